"""Significance tests of two methods' translations: paired bootstrap and approximate randomisation, by sacrebleu.

Sources: Koehn 2004; Riezler and Maxwell 2005. Only hypotheses are needed.

The bootstrap is sacrebleu's. Its randomisation test counts only exchanges whose difference is larger than the observed
one. If systems differ in a handful of sentences, most exchanges give an equal difference, and its p is far too small.
The one here also counts equal differences, as its source does, and with few differing sentences takes all exchanges.
Where no difference is equal, p is sacrebleu's.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import numpy as np
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from rarepapers.metrics.translation_scores import Scoring

# The split whose translations are compared.
SPLIT = "test"
# With at most this many differing sentences, randomisation takes all exchanges.
MOST_ENUMERATED = 16
# Relative difference below which differences of scores count as equal.
ROUNDING = 1e-9
# Numbers of samples, as in sacrebleu.
TESTS = {"bootstrap": 1000, "randomisation": 10_000}
# sacrebleu reads its seed from the environment.
SEED_VARIABLE = "SACREBLEU_SEED"


@dataclass(frozen=True)
class Comparison:
    """One metric of two systems by one test.

    first, second: the systems' values, 0 to 100. p: probability of a difference at least this large if there is none.
    intervals: bounds of a 95 % interval of each system's value if the test resamples (bootstrap), else None. signature:
    sacrebleu's, of metric and test.
    """

    metric: str
    test: str
    first: float
    second: float
    p: float
    intervals: tuple[tuple[float, float], tuple[float, float]] | None
    signature: str


def compare(
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[str],
    scoring: Scoring,
    tests: Sequence[str] = tuple(TESTS),
    samples: int | None = None,
    seed: int = 12345,
) -> list[Comparison]:
    """BLEU and chrF of two systems' translations of the same sentences, plain text, by each test.

    All three have the same number of sentences. samples: number of resamples or trials; by default sacrebleu's 1,000
    and 10,000. seed: at least 1, because sacrebleu takes 0 for none; equal seeds give equal p.
    """
    return [
        comparison
        for test in tests
        for comparison in (_bootstrap if test == "bootstrap" else _randomisation)(
            list(first), list(second), list(references), scoring, samples or TESTS[test], seed
        )
    ]


def _metrics(scoring: Scoring, references: list[str]) -> dict[str, BLEU | CHRF]:
    return {"bleu": scoring.bleu([references]), "chrf": scoring.chrf([references])}


def _bootstrap(
    first: list[str], second: list[str], references: list[str], scoring: Scoring, samples: int, seed: int
) -> Iterator[Comparison]:
    """sacrebleu's paired bootstrap."""
    metrics = _metrics(scoring, references)
    systems = [("first", first), ("second", second)]
    with _seed(seed):
        paired = PairedTest(systems, metrics, references=None, test_type="bs", n_samples=samples)
        signatures, scores = paired()
    # sacrebleu names metrics by variant (chrF2), in the given order.
    for name, variant in zip(metrics, signatures, strict=True):
        results = scores[variant]
        values = [float(one.score) for one in results]
        # Resamples of equal systems, or of one sentence, are all equal: sacrebleu would report 1/1001.
        p = 1.0 if values[0] == values[1] or len(references) == 1 else float(results[1].p_value)
        intervals = tuple(map(_interval, results))
        yield Comparison(name, "bootstrap", *values, p, intervals, str(signatures[variant]))


def _randomisation(
    first: list[str], second: list[str], references: list[str], scoring: Scoring, samples: int, seed: int
) -> Iterator[Comparison]:
    """Approximate randomisation, with the random numbers of sacrebleu; exact for few differing sentences."""
    exchanged = np.random.default_rng(seed).integers(2, size=(samples, len(references)), dtype=bool)
    for name, scorer in _metrics(scoring, references).items():
        ours, theirs = (np.array(scorer._extract_corpus_statistics(lines, None)) for lines in (first, second))
        differ = np.flatnonzero((ours != theirs).any(axis=1))
        trials, exact = exchanged, len(differ) <= MOST_ENUMERATED
        if exact:
            # The exchange of a set of sentences and that of all others give the same difference.
            free = max(0, len(differ) - 1)
            trials = np.zeros((2**free, len(references)), dtype=bool)
            trials[:, differ[:free]] = np.arange(2**free)[:, None] >> np.arange(free) & 1
        # Sums of sufficient statistics over sentences; integers, so that equal exchanges have equal scores.
        sums = trials @ ours + ~trials @ theirs, ~trials @ ours + trials @ theirs
        scores = [np.array([scorer._compute_score_from_stats(list(one)).score for one in side]) for side in sums]
        values = [float(scorer._compute_score_from_stats(list(side.sum(0))).score) for side in (ours, theirs)]
        reached = int((np.abs(scores[0] - scores[1]) >= abs(values[0] - values[1]) * (1 - ROUNDING)).sum())
        p = reached / len(trials) if exact else (reached + 1) / (len(trials) + 1)
        signature = scorer.get_signature()
        signature.update("seed", str(seed))
        signature.update("ar", "all" if exact else samples)
        yield Comparison(name, "randomisation", *values, p, None, str(signature))


def compare_systems(
    systems: dict[str, Sequence[str]],
    references: Sequence[str],
    scoring: Scoring,
    samples: int | None = None,
    seed: int = 12345,
) -> dict:
    """Each system's translations compared with those of the first, as `rarepapers compare` writes it.

    `hypotheses` has the digest of each system's translations, so that a comparison can be told from one of other
    translations of the same sentences.
    """
    (baseline, first), *others = systems.items()
    tests = [
        {"baseline": baseline, "system": label} | asdict(one)
        for label, second in others
        for one in compare(first, second, references, scoring, samples=samples, seed=seed)
    ]
    return {
        "sentences": len(references),
        "references": digest(references),
        "hypotheses": {label: digest(lines) for label, lines in systems.items()},
        "comparisons": tests,
    }


def digest(lines: Sequence[str]) -> str:
    """SHA-256 of lines of text, in hexadecimal."""
    return hashlib.sha256("\n".join(lines).encode("utf-8")).hexdigest()


def _interval(result) -> tuple[float, float]:
    """A system's 95 % interval, from sacrebleu's mean and half width."""
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
