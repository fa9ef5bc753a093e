"""Whether two methods' translations differ: paired bootstrap and approximate randomisation, by sacrebleu.

Koehn 2004 and Riezler and Maxwell 2005. From hypotheses alone: nothing is trained or decoded again.
"""

import os
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

METRICS = {"bleu": BLEU, "chrf": CHRF}
# sacrebleu's names and numbers of samples.
TESTS = {"bootstrap": ("bs", 1000), "randomisation": ("ar", 10_000)}
# sacrebleu takes it from the environment.
SEED_VARIABLE = "SACREBLEU_SEED"


@dataclass(frozen=True)
class Comparison:
    """One metric of two systems by one test.

    first, second: the systems' values, 0 to 100. p: probability of a difference as large when there is none.
    lower, upper: of a 95 % interval of each system's value where the test has one (bootstrap), else NaN, as
    (first, second). signature: sacrebleu's, of metric and test.
    """

    metric: str
    test: str
    first: float
    second: float
    p: float
    lower: tuple[float, float]
    upper: tuple[float, float]
    signature: str

    def as_dict(self) -> dict:
        """For JSON, which has no NaN."""
        entry = asdict(self)
        for key in ("lower", "upper"):
            entry[key] = [value if value == value else None for value in entry[key]]
        return entry


def compare(
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[str],
    tests: Sequence[str] = tuple(TESTS),
    samples: int | None = None,
    seed: int = 12345,
) -> list[Comparison]:
    """BLEU and chrF of two systems' translations of the same sentences, plain text, by each of the tests.

    samples: resamples or trials; without, sacrebleu's 1,000 and 10,000. The same seed, at least 1, gives the same p.
    Raises ValueError where the three have not the same number of sentences.
    """
    if seed < 1:
        raise ValueError(f"seed is {seed}; sacrebleu takes 0 for none")
    if not len(first) == len(second) == len(references):
        raise ValueError(f"{len(first)} and {len(second)} hypotheses do not fit {len(references)} references")
    systems = [("first", list(first)), ("second", list(second))]
    found = []
    for test in tests:
        kind, usual = TESTS[test]
        metrics = {name: metric(references=[list(references)]) for name, metric in METRICS.items()}
        with _seed(seed):
            paired = PairedTest(systems, metrics, references=None, test_type=kind, n_samples=samples or usual)
            signatures, scores = paired()
        # sacrebleu names metrics by their variant (chrF2), in the order in which they were given.
        for name, variant in zip(METRICS, signatures, strict=True):
            results = scores[variant]
            spans = [_span(r) for r in results]
            found.append(
                Comparison(
                    metric=name,
                    test=test,
                    first=float(results[0].score),
                    second=float(results[1].score),
                    p=float(results[1].p_value),
                    lower=tuple(low for low, _ in spans),
                    upper=tuple(high for _, high in spans),
                    signature=str(signatures[variant]),
                )
            )
    return found


def _span(result) -> tuple[float, float]:
    """A system's 95 % interval: sacrebleu has a mean and half an interval where it resampled."""
    if result.ci is None:
        return float("nan"), float("nan")
    return float(result.mean) - float(result.ci), float(result.mean) + float(result.ci)


@contextmanager
def _seed(seed: int):
    before = os.environ.get(SEED_VARIABLE)
    os.environ[SEED_VARIABLE] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ[SEED_VARIABLE]
        else:
            os.environ[SEED_VARIABLE] = before
