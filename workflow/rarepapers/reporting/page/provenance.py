"""Provenance of the report: finished runs with hashes and settings, missing runs, versions and devices."""

from dataclasses import dataclass

import yaml

from rarepapers.experiments.run_code import is_copy
from rarepapers.experiments.seeds import seed_ranges
from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.recorded_precision import precision_of, processor_of
from rarepapers.reporting.results import Results


@dataclass(frozen=True)
class Runs:
    """The runs of one method: expected seeds, and the records of the finished ones.

    trained: {seed: `training` of its metrics.json}.
    """

    method: Method
    trained: dict[int, dict]

    @property
    def anchor(self) -> str:
        """The id of the method's settings on the provenance page."""
        return f"runs-{self.method.experiment}-{self.method.name}"

    @property
    def missing(self) -> list[int]:
        """Seeds without a finished run."""
        return [seed for seed in self.method.seeds if seed not in self.trained]

    @property
    def settings(self) -> dict:
        """The settings of the first run without its seed, with derived parameters."""
        first = next(iter(self.trained.values()))
        shown = {key: value for key, value in first["settings"].items() if key != "seed"}
        return shown | ({"derived": first["derived"]} if first.get("derived") else {})


def shared(settings: list[dict]) -> dict:
    """The keys and values, at any depth, which all of some nested settings have."""
    first, *others = settings
    made = {}
    for key, value in first.items():
        if all(isinstance(one.get(key), dict) for one in settings):
            if inner := shared([one[key] for one in settings]):
                made[key] = inner
        elif all(key in one and one[key] == value for one in others):
            made[key] = value
    return made


def without(settings: dict, common: dict) -> dict:
    """Nested settings without what `shared` found."""
    made = {}
    for key, value in settings.items():
        if key not in common:
            made[key] = value
        elif value != common[key]:
            made[key] = without(value, common[key])
    return made


def in_yaml(settings: dict) -> str:
    """Settings as they are shown; the empty string for none."""
    return yaml.safe_dump(settings, default_flow_style=None, allow_unicode=True, width=80) if settings else ""


def runs_of(methods: list[Method], results: Results) -> list[Runs]:
    """The runs of methods, each in its experiment."""
    return [Runs(method, results.trainings(method)) for method in methods]


def count(runs: list[Runs]) -> tuple[int, int]:
    """Number of finished and of expected runs."""
    return sum(len(one.trained) for one in runs), sum(len(one.method.seeds) for one in runs)


def missing(runs: list[Runs]) -> str:
    """The missing runs in words, by experiment and, for methods with finished runs, by seeds; empty if none are."""
    groups: dict[str, list[str]] = {}
    for one in runs:
        if one.missing:
            seeds = f", seed{'s' if len(one.missing) > 1 else ''} {seed_ranges(one.missing)}"
            groups.setdefault(one.method.experiment + (seeds if one.trained else ""), []).append(one.method.label)
    return "; ".join(f"{place}: {', '.join(labels)}" for place, labels in groups.items())


def provenance(definition: Definition, results: Results) -> dict:
    """Versions, devices and other facts of a paper's runs, with the runs and settings by method.

    Settings which all methods of an experiment have are given once (`shared`), `own` has the others by `Runs.anchor`.
    """
    runs = runs_of(definition.shown(), results)
    finished = [one for one in runs if one.trained]
    methods: dict[str, list[Runs]] = {}
    for one in finished:
        methods.setdefault(one.method.experiment, []).append(one)
    common = {experiment: shared([one.settings for one in those]) for experiment, those in methods.items()}
    trainings = [training for one in runs for training in one.trained.values()]
    seen = {
        "Seeds": {training["seed"] for training in trainings},
        "Devices": {training["device"] for training in trainings},
        "Processors": {processor_of(training) for training in trainings},
        "Precisions": {precision_of(training) for training in trainings},
        "Versions": {f"{key} {value}" for t in trainings for key, value in t["versions"].items()},
        "Commits": {training["commit"] for training in trainings},
        "Data (sha256)": {training["data"] for training in trainings},
    }
    done, expected = count(runs)
    copies = sum(map(is_copy, trainings))
    hours = sum(training["seconds"] for training in trainings if not is_copy(training)) / 3600
    facts = {"Runs": f"{done} of {expected}"}
    if done:
        facts["Training time"] = f"{hours:.2f} hours of wall time"
        facts |= {name: ", ".join(map(str, sorted(values))) for name, values in seen.items()}
    return {
        "id": definition.paper,
        "title": definition.title,
        "facts": facts,
        "runs": finished,
        "shared": {experiment: in_yaml(settings) for experiment, settings in common.items()},
        "own": {one.anchor: in_yaml(without(one.settings, common[one.method.experiment])) for one in finished},
        "done": done,
        "expected": expected,
        "copies": copies,
        "missing": missing(runs),
    }
