"""Significance tests of two methods' translations: paired bootstrap and approximate randomisation, by sacrebleu.

Sources: Koehn 2004; Riezler and Maxwell 2005. Only hypotheses are needed.

sacrebleu counts samples whose difference is larger than the observed one, but not equal ones. If systems differ in a
handful of sentences, most samples are equal, and its p is far too small.
"""

import hashlib
import os
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from sacrebleu.significance import PairedTest

from raretok.metrics.translation_scores import Scoring

# The split whose translations are compared.
SPLIT = "test"
# sacrebleu's names of the tests, and default numbers of samples.
TESTS = {"bootstrap": ("bs", 1000), "randomisation": ("ar", 10_000)}
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
    systems = [("first", list(first)), ("second", list(second))]
    found = []
    for test in tests:
        kind, usual = TESTS[test]
        metrics = {"bleu": scoring.bleu([list(references)]), "chrf": scoring.chrf([list(references)])}
        with _seed(seed):
            paired = PairedTest(systems, metrics, references=None, test_type=kind, n_samples=samples or usual)
            signatures, scores = paired()
        # sacrebleu names metrics by variant (chrF2), in the given order.
        for name, variant in zip(metrics, signatures, strict=True):
            results = scores[variant]
            values = [float(one.score) for one in results]
            found.append(
                Comparison(
                    metric=name,
                    test=test,
                    first=values[0],
                    second=values[1],
                    # For equal systems no sample has a larger difference than 0: sacrebleu would report 1/1001.
                    p=1.0 if values[0] == values[1] else float(results[1].p_value),
                    intervals=tuple(map(_interval, results)) if test == "bootstrap" else None,
                    signature=str(signatures[variant]),
                )
            )
    return found


def compare_systems(
    systems: dict[str, Sequence[str]],
    references: Sequence[str],
    scoring: Scoring,
    samples: int | None = None,
    seed: int = 12345,
) -> dict:
    """Each system's translations compared with those of the first, as `raretok compare` writes it.

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
