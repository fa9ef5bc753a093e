"""
Family-wise error rate of a paper's verdicts, and detectable effects: the tables of docs/statistics.md.

    python benchmarks/claims_error_rate.py [--projects 10000]

A project simulates the tests of one paper: `pools` metrics of `rows` methods each. All rows are compared with the first
one, and `tested` of these comparisons per metric are claims. Seeds of a method are normal, no method differs from
another, and metrics are independent, the case in which Holm's correction is least conservative. A family-wise error is
at least one claim whose p survives Holm: with no true claim, one p below 5% divided by the number of claims.

The arithmetic of rarepapers/reporting/statistics/moderated_t.py is repeated here for many projects at once; a test
compares the two.
"""

import argparse
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, polygamma, stdtr

from rarepapers.reporting.statistics.moderated_t import FREE_ROWS, MOST_PRIOR_DF, OUTLYING
from rarepapers.reporting.statistics.significance import LEVEL

SEEDS = (2, 3, 5, 10)
LIMMA = "limma"
METHODS = {"t": "Student's t", LIMMA: "limma", "ours": "moderated t", "levels": "levels"}
POWER = 0.8
# Number of projects computed at a time, limited by memory.
BATCH = 500


@dataclass(frozen=True)
class Family:
    """The tests of one paper that seeds can decide: `pools` x `tested`; `rows` methods in each pool."""

    pools: int
    rows: int
    tested: int

    @property
    def claims(self) -> int:
        return self.pools * self.tested


# Sizes at scale small: tests as counted by `family` of reporting/claims/claims_command.py, rows as trained in the
# papers' experiments.
FAMILIES = {
    "stop_jostling": Family(10, 14, 5),  # 40 claims and 10 stated sizes, 14 rows in table 1
    "agg": Family(13, 13, 4),  # 52 claims, 13 language models
    "agps": Family(5, 5, 4),  # 18 claims, 5 language models
    "natural_bias": Family(16, 3, 1),  # 16 claims, 3 starts a data set
}


def equal(generator, shape):
    """All rows have equal standard deviation."""
    return np.ones(shape)


def drawn(generator, shape):
    """Log-normal standard deviations: two rows differ by a factor of 1.6 at the median."""
    return np.exp(0.5 * generator.standard_normal(shape))


def larger(rows: int | slice, factor: float):
    """Some rows have `factor` times the others' standard deviation; 0 is the baseline, 1 is in every comparison."""

    def spread(generator, shape):
        sd = np.ones(shape)
        sd[..., rows] = factor
        return sd

    return spread


VARIANCES = {
    "equal": equal,
    "log-normal": drawn,
    "half of the rows x 3": larger(slice(1, None, 2), 3),
    "a claim's row x 3": larger(1, 3),
    "the baseline x 3": larger(0, 3),
}
BEYOND = {"a claim's row x 10": larger(1, 10), "the baseline x 10": larger(0, 10)}


def contrasts(family: Family, seeds: int, projects: int, spread, generator) -> np.ndarray:
    """Values of projects without differences: (projects, pools, rows, seeds); rows share their seeds."""
    shape = (projects, family.pools, family.rows)
    shared = generator.standard_normal((projects, family.pools, 1, seeds))
    return shared + generator.standard_normal((*shape, seeds)) * spread(generator, shape)[..., None]


def p_values(values: np.ndarray, tested: int, method: str, shift: float = 0.0, one_sided: bool = False) -> np.ndarray:
    """Two-sided p of the first `tested` differences from row 0, (projects, pools, tested); `shift` is added to each.

    method "levels": p of the rows themselves, each against a constant. one_sided: p of differences below 0, as of an
    effect of the excluded size that looks smaller (a test of equivalence at its bound).
    """
    df = values.shape[-1] - 1
    differences = values[..., 1:, :] - (0 if method == "levels" else values[..., :1, :])
    own = differences.var(-1, ddof=1)
    means = differences.mean(-1)[..., :tested] + shift
    posterior, total = own[..., :tested], np.array(float(df))
    if method == LIMMA:
        variance, known = squeeze(own, df)
        known = np.minimum(known, own.shape[-1] * df)
    elif method != "t":
        kept = own <= OUTLYING**2 * np.median(own, -1, keepdims=True)
        if method == "levels":
            number = kept.sum(-1)
            variance, known = squeeze(own, df, kept)
        else:
            # The baseline is compared with every row, and belongs to the pool.
            in_pool = np.insert(kept, 0, True, axis=-1)
            number = in_pool.sum(-1)
            known_df = df * (number - 1) / number
            variance, known = squeeze(residual_squares(values, in_pool) / known_df[..., None], known_df, in_pool)
            variance = np.maximum(2 * variance, own.mean(-1, where=kept))
        most = np.clip((number - FREE_ROWS) / 2, 0, MOST_PRIOR_DF)
        known = np.minimum(known, most / 2 if method == "levels" else most)
    if method != "t":
        known = known[..., None] * (1.0 if method == LIMMA else kept[..., :tested])
        total = known + df
        posterior = (known * variance[..., None] + df * posterior) / total
    t = means / np.sqrt(posterior / (df + 1))
    return stdtr(total, t) if one_sided else 2 * stdtr(total, -np.abs(t))


def residual_squares(values: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Sums of squares of each row after removing what the `kept` rows share in a seed."""
    rows = values - values.mean(-1, keepdims=True)
    shared = rows.mean(-2, keepdims=True, where=kept[..., None])
    return ((rows - shared) ** 2).sum(-1)


def squeeze(variances: np.ndarray, df, kept: np.ndarray | bool = True) -> tuple[np.ndarray, np.ndarray]:
    """s0^2 and d0 (1e6 for infinity) of each pool, over the `kept` rows of the last axis. df: of each pool or all."""
    df = np.asarray(df, dtype=float)
    logs = np.log(variances) + (np.log(df / 2) - digamma(df / 2))[..., None]
    excess = logs.var(-1, ddof=1, where=kept) - polygamma(1, df / 2)
    varied = excess > 0
    # d0 of 1e6 and more counts as infinite, so that the Newton iterations start below it.
    half_df = trigamma_inverse(np.where(varied, np.maximum(excess, 2e-6), 1.0))
    moments = np.exp(logs.mean(-1, where=kept) + digamma(half_df) - np.log(half_df))
    means = variances.mean(-1, where=kept)
    return np.where(varied, moments, means), np.where(varied, 2 * half_df, 1e6)


def trigamma_inverse(values: np.ndarray) -> np.ndarray:
    """y with trigamma(y) = values."""
    y = 0.5 + 1 / values
    for _ in range(8):
        trigamma = polygamma(1, y)
        y = y + trigamma * (1 - trigamma / values) / polygamma(2, y)
    return y


def error_rate(
    family: Family, seeds: int, spread, method: str, projects: int, seed: int = 0, first: int | None = None
) -> float:
    """Share of projects without true claims in which at least one claim survives Holm.

    first: number of seeds at the first look. Claims are judged again after every further seed and stay decided.
    """
    wrong = 0
    for generator, number in batches(projects, seed):
        values = contrasts(family, seeds, number, spread, generator)
        looks = [values[..., :known] for known in range(first or seeds, seeds + 1)]
        smallest = np.min([p_values(look, family.tested, method).min((1, 2)) for look in looks], 0)
        wrong += int((smallest < LEVEL / family.claims).sum())
    return wrong / projects


def added_rate(family: Family, spread, projects: int, start: int = 3, most: int = 6, seed: int = 0) -> float:
    """`error_rate` if only nearly decided claims get further seeds.

    All claims are judged with `start` seeds. As long as a claim has p < 5% but does not survive Holm, it gets another
    seed, up to `most`, and is judged again.
    """
    wrong = 0
    for generator, number in batches(projects, seed):
        values = contrasts(family, most, number, spread, generator)
        decided = np.zeros((number, family.pools, family.tested), dtype=bool)
        waits = np.ones_like(decided)
        for seeds in range(start, most + 1):
            p = p_values(values[..., :seeds], family.tested, "ours")
            decided |= waits & (p < LEVEL / family.claims)
            waits &= (p < LEVEL) & ~decided
        wrong += int(decided.any((1, 2)).sum())
    return wrong / projects


def equivalence_rate(family: Family, seeds: int, spread, share: float, projects: int, seed: int = 0) -> float:
    """Share of projects with a wrong verdict if this share of the claims has no effect, and all others the size X.

    Wrong is a direction of the former, or "no effect larger than X" of the latter. X is large compared with the spread
    of seeds, so that one of the two one-sided tests is always passed: the worst case.
    """
    wrong, none = 0, round(share * family.pools)
    for generator, number in batches(projects, seed):
        values = contrasts(family, seeds, number, spread, generator)
        smallest = np.ones(number)
        if none:
            smallest = p_values(values[:, :none], family.tested, "ours").min((1, 2))
        if none < family.pools:
            at_bound = p_values(values[:, none:], family.tested, "ours", one_sided=True).min((1, 2))
            smallest = np.minimum(smallest, at_bound)
        wrong += int((smallest < LEVEL / family.claims).sum())
    return wrong / projects


def effect_found(claims: int, rows: int, seeds: int, method: str, projects: int, seed: int = 0) -> float:
    """The effect, in standard deviations of a difference over seeds, that Holm's first step detects with power 0.8."""
    generator = np.random.default_rng(seed)
    values = contrasts(Family(1, rows, 1), seeds, projects, equal, generator)
    low, high = 0.0, 2000.0
    for _ in range(40):
        middle = (low + high) / 2
        # The difference of two rows with standard deviation 1 has standard deviation sqrt(2).
        found = (p_values(values, 1, method, middle * 2**0.5) < LEVEL / claims).mean()
        low, high = (low, middle) if found >= POWER else (middle, high)
    return high


def batches(projects: int, seed: int):
    """Generators and numbers of projects for batches of bounded memory."""
    for start in range(0, projects, BATCH):
        yield np.random.default_rng([seed, start]), min(BATCH, projects - start)


def error_table(projects: int, scenarios: dict, methods: list[str]) -> list[str]:
    """Markdown table: family-wise error by family, variances and number of seeds."""
    heads = ["claims, rows", "seeds differ", *(f"{METHODS[name]}, {seeds}" for name in methods for seeds in SEEDS)]
    lines = [f"| {' | '.join(heads)} |", f"|---|---|{'---:|' * (len(heads) - 2)}"]
    for family in FAMILIES.values():
        for label, spread in scenarios.items():
            rates = [f"{error_rate(family, seeds, spread, name, projects):.1%}" for name in methods for seeds in SEEDS]
            lines.append(f"| {family.claims}, {family.rows} | {label} | {' | '.join(rates)} |")
    return lines


def looks_table(projects: int) -> list[str]:
    """Markdown table: family-wise error if the claims are judged after every seed from the second on."""
    lines = ["| claims, rows | seeds differ | seeds 2 to 5 | 2 to 10 |", "|---|---|---:|---:|"]
    for family in FAMILIES.values():
        for label, spread in VARIANCES.items():
            rates = [f"{error_rate(family, seeds, spread, 'ours', projects, first=2):.1%}" for seeds in (5, 10)]
            lines.append(f"| {family.claims}, {family.rows} | {label} | {' | '.join(rates)} |")
    return lines


def added_table(projects: int) -> list[str]:
    """Markdown table: family-wise error if only nearly decided claims get a fourth to sixth seed."""
    lines = ["| claims, rows | seeds differ | 3 seeds | 3 to 6 |", "|---|---|---:|---:|"]
    for family in FAMILIES.values():
        for label, spread in VARIANCES.items():
            rates = error_rate(family, 3, spread, "ours", projects), added_rate(family, spread, projects)
            lines.append(
                f"| {family.claims}, {family.rows} | {label} | {' | '.join(f'{rate:.1%}' for rate in rates)} |"
            )
    return lines


def equivalence_table(projects: int) -> list[str]:
    """Markdown table: wrong verdicts if all effects are X, or half of them are and the others are 0."""
    heads = [f"{words}, {seeds} seeds" for words in ("all X", "half X, half none") for seeds in (3, 5, 10)]
    lines = [f"| claims, rows | seeds differ | {' | '.join(heads)} |", f"|---|---|{'---:|' * len(heads)}"]
    for family in FAMILIES.values():
        for label, spread in VARIANCES.items():
            rates = [
                equivalence_rate(family, seeds, spread, share, projects) for share in (0, 0.5) for seeds in (3, 5, 10)
            ]
            lines.append(
                f"| {family.claims}, {family.rows} | {label} | {' | '.join(f'{rate:.1%}' for rate in rates)} |"
            )
    return lines


def effect_table(projects: int, claims: int, rows: int) -> list[str]:
    """Markdown table: detectable effects by number of seeds."""
    lines = ["| seeds | Student's t | moderated t |", "|---:|---:|---:|"]
    for seeds in SEEDS:
        found = [effect_found(claims, rows, seeds, name, projects) for name in ("t", "ours")]
        lines.append(f"| {seeds} | {' | '.join(f'{value:.2g}' for value in found)} |")
    return lines


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--projects", type=int, default=10_000)
    projects = parser.parse_args().projects
    print("\n".join(error_table(projects, VARIANCES, ["ours"])), flush=True)
    print("\n".join(["", *error_table(projects, BEYOND, ["ours"])]), flush=True)
    print("\n".join(["", *error_table(projects, {"equal": equal}, ["t", LIMMA])]), flush=True)
    some = {name: VARIANCES[name] for name in ("equal", "a claim's row x 3")}
    print("\n".join(["", *error_table(projects, some, ["levels"])]), flush=True)
    print("\n".join(["", *looks_table(projects)]), flush=True)
    print("\n".join(["", *added_table(projects)]), flush=True)
    print("\n".join(["", *equivalence_table(projects)]), flush=True)
    print("\n".join(["", *effect_table(projects, 40, 14)]), flush=True)


if __name__ == "__main__":
    main()
