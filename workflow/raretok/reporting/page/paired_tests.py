"""Whether systems' translations differ by more than chance: the rows that the page shows of `raretok compare`.

The tests resample test sentences of one training each; they say nothing about other seeds.
"""

from dataclasses import dataclass
from pathlib import Path

from raretok.core.files import read_json
from raretok.experiments.grids import has_candidates
from raretok.reporting.corpus_names import corpus_title
from raretok.reporting.definition import Definition

METRICS = {"bleu": "BLEU", "chrf": "chrF"}


@dataclass(frozen=True)
class PairedTest:
    """One metric of one system against its experiment's first, on the test split of one seed.

    value, baseline_value: of both, 0 to 100. p: of each test, "bootstrap" and "randomisation", before any correction
    for their number.
    """

    experiment: str
    corpus: str
    seed: int
    system: str
    baseline: str
    metric: str
    value: float
    baseline_value: float
    p: dict[str, float]

    @property
    def difference(self) -> float:
        """How much better the system is than the baseline."""
        return self.value - self.baseline_value


def paired_tests(definition: Definition, results: Path) -> list[PairedTest]:
    """All paired tests of a paper's experiments below a scale's results, in the order of the config.

    None of a paper whose methods are candidates: the first of them need not be the one that stands for its method.
    """
    if has_candidates(vars(definition)):
        return []
    return [
        test
        for experiment in definition.settings
        for path in sorted((results / "comparisons" / experiment).glob("seed*.json"), key=_seed)
        for test in _tests(definition, experiment, path)
    ]


def _tests(definition: Definition, experiment: str, path: Path) -> list[PairedTest]:
    found: dict[tuple[str, str], dict] = {}
    for one in read_json(path)["comparisons"]:
        if {one["system"], one["baseline"]} <= definition.methods.keys():
            entry = found.setdefault((one["system"], one["metric"]), one | {"p": {}})
            entry["p"][one["test"]] = one["p"]
    return [
        PairedTest(
            experiment=experiment,
            corpus=corpus_title(definition.settings[experiment]["corpus"]["name"]),
            seed=_seed(path),
            system=definition.methods[system].label,
            baseline=definition.methods[entry["baseline"]].label,
            metric=METRICS[metric],
            value=entry["second"],
            baseline_value=entry["first"],
            p=entry["p"],
        )
        for (system, metric), entry in found.items()
    ]


def _seed(path: Path) -> int:
    return int(path.stem.removeprefix("seed"))
