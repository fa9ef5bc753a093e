"""What the page rests on: runs with their hashes and settings, those that are missing, and their command."""

import json
from dataclasses import dataclass
from pathlib import Path

from raretok.reporting.definition import Definition, Method
from raretok.reporting.results import Results


@dataclass(frozen=True)
class Runs:
    """The runs of one method: seeds that its scale asks for, and what is on record of those that are there.

    trained: {seed: `training` of its metrics.json}.
    """

    method: Method
    trained: dict[int, dict]

    @property
    def anchor(self) -> str:
        """The place of its settings on the page."""
        return f"runs-{self.method.experiment}-{self.method.name}"

    @property
    def missing(self) -> list[int]:
        """Seeds without a run."""
        return [seed for seed in self.method.seeds if seed not in self.trained]

    @property
    def settings(self) -> str:
        """What determines the first of its runs, but for the seed, as JSON; with what was derived from the data."""
        first = next(iter(self.trained.values()))
        shown = {key: value for key, value in first["settings"].items() if key != "seed"}
        if first.get("derived"):
            shown["derived"] = first["derived"]
        return json.dumps(shown, indent=2, ensure_ascii=False)


class Records:
    """The records of all runs of a results folder, each method's read once."""

    def __init__(self, results: Results):
        self.results = results
        self._read: dict[tuple, dict[int, dict]] = {}

    def of(self, method: Method) -> Runs:
        """The runs of a method in its experiment."""
        key = (method.experiment, method.name, method.seeds)  # items may call one method by different labels
        if key not in self._read:
            self._read[key] = self.results.trainings(method)
        return Runs(method, self._read[key])

    def path(self, method: Method, seed: int) -> Path:
        """The file that a run's numbers and record are in."""
        return self.results.record_of(method, seed)

    def behind(self, definition: Definition, item: str) -> list[Runs]:
        """The runs that a table or figure shows, method by method."""
        entry = definition.tables.get(item) or definition.figures[item]
        view, compared = definition.of(item), definition.compared(item)
        methods = [view.method(name) for name in entry.get("methods", [])]
        if compared:
            methods = [method.within(experiment) for experiment in compared for method in methods]
        return [self.of(method) for method in methods if method.is_trained_in(method.experiment)]


def runs_of(definition: Definition, records: Records) -> list[Runs]:
    """The runs of every method in every experiment in which a paper shows it."""
    return [records.of(method) for method in definition.shown()]


def count(runs: list[Runs]) -> tuple[int, int]:
    """How many runs are there, and how many there would be."""
    return sum(len(one.trained) for one in runs), sum(len(one.method.seeds) for one in runs)


def missing(runs: list[Runs]) -> str:
    """The runs that are not there, by method, methods that miss the same seeds together; empty where all are."""
    groups: dict[str, list[str]] = {}
    for one in runs:
        if one.missing:
            seeds = "" if len(one.missing) == len(one.method.seeds) else _seeds(one.missing)
            name = one.method.label
            if sum(other.method.label == name for other in runs) > 1:
                name = f"{name} in {one.method.experiment}"
            groups.setdefault(seeds, []).append(name)
    parts = []
    for seeds, names in groups.items():
        alike = len(names) == len(runs)
        who = ("every run" if not seeds else "every method") if alike else ", ".join(names)
        parts.append(f"{who} ({seeds})" if seeds else who)
    return "; ".join(parts)


def _seeds(seeds: list[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def provenance(definitions: list[Definition], records: Records) -> list[dict]:
    """What the runs of each paper were made with: every value that occurs, and the runs by method."""
    papers = []
    for definition in definitions:
        runs = runs_of(definition, records)
        trainings = [training for one in runs for training in one.trained.values()]
        seen = {
            "Seeds": {training["seed"] for training in trainings},
            "Devices": {training["device"] for training in trainings},
            "Versions": {f"{key} {value}" for t in trainings for key, value in t["versions"].items()},
            "Commits": {training["commit"] for training in trainings},
            "Data (sha256)": {training["data"] for training in trainings},
        }
        done, expected = count(runs)
        hours = sum(training["seconds"] for training in trainings) / 3600
        facts = {"Runs": f"{done} of {expected}"}
        if done:
            facts["Training time"] = f"{hours:.2f} hours in all"
            facts |= {name: ", ".join(map(str, sorted(values))) for name, values in seen.items()}
        papers.append(
            {
                "id": definition.paper,
                "title": definition.title,
                "facts": facts,
                "runs": [one for one in runs if one.trained],
                "done": done,
                "expected": expected,
                "missing": missing(runs),
            }
        )
    return papers
