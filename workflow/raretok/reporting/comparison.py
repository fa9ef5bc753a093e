"""Methods held against each other: which candidate stands for a method, and what it changes against the first method.

A candidate is chosen on the validation text and shown on the test text. A change is in per cent of the first method's
number, seed by seed: methods of one seed saw the same batches.
"""

import math
from dataclasses import dataclass

from raretok.reporting.definition import Definition, Method
from raretok.reporting.intervals import t_interval
from raretok.reporting.results import Results

# By what candidates are chosen, one criterion for all methods and tasks: the perplexity of all of the validation text
# at the temperature that fits it, the least; seeds averaged.
CRITERION = {"metric": "fitted_perplexity", "group": "total", "split": "valid@best"}
# What must be the same of two trainings for their seconds to be compared.
SAME = ("device", "processes", "together")


@dataclass(frozen=True)
class Chosen:
    """The candidate that stands for a method in a task.

    label: of the method. method: the candidate, in the task's experiment; None where none was measured. words: its
    values. criterion: its perplexity. finished, tried: candidates that were measured, and that there are. seeds: on
    which they were held against each other.
    """

    label: str
    method: Method | None
    words: str
    criterion: float
    finished: int
    tried: int
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Change:
    """Mean change in per cent with its 95% t interval over `seeds` (None for one seed)."""

    mean: float
    lower: float | None
    upper: float | None
    seeds: int

    @property
    def is_more(self) -> bool:
        """Whether the interval lies above 0."""
        return self.lower is not None and self.lower > 0

    @property
    def is_less(self) -> bool:
        """Whether the interval lies below 0."""
        return self.upper is not None and self.upper < 0


def choose(definition: Definition, results: Results, family: dict, experiment: str) -> Chosen | None:
    """The candidate of a method in a task; None where the method is not trained in it.

    family: {label, methods: {candidate: its values in words}}. Candidates are held against each other on the seeds that
    all measured ones have; where there is none, each on its own. A perplexity that is not finite is the worst.
    """
    methods = {name: definition.method(name).within(experiment) for name in family["methods"]}
    trained = {name: method for name, method in methods.items() if method.is_trained_in(experiment)}
    if not trained:
        return None
    values = {name: found for name, method in trained.items() if (found := measured(results, method, CRITERION))}
    if not values:
        return Chosen(family["label"], None, "", math.nan, 0, len(trained), ())
    common = set.intersection(*map(set, values.values()))
    scores = {
        name: sum(found[seed] for seed in common or found) / len(common or found) for name, found in values.items()
    }
    # The first among equals: grids begin with the published value.
    best = min(scores, key=lambda name: scores[name])
    return Chosen(
        family["label"],
        trained[best],
        family["methods"][best],
        scores[best],
        len(values),
        len(trained),
        tuple(sorted(common)),
    )


def families(definition: Definition, entry: dict) -> list[dict]:
    """The methods of a table or figure as {label, methods: {candidate: its values in words}}.

    A method without a grid is its own only candidate.
    """
    named = entry.get("candidates") or {
        name: {"label": definition.method(name).label, "methods": {name: "as it is"}} for name in entry["methods"]
    }
    return list(named.values())


def measured(results: Results, method: Method, how: dict, group: str | None = None) -> dict[int, float]:
    """Values by seed of a column (`metric`, `split`, `group`) of a method in its experiment."""
    return results.per_seed(method, how["metric"], how["group"] if group is None else group, split=how["split"])


def change(ours: dict[int, float], first: dict[int, float]) -> Change | None:
    """By how many per cent `ours` is above `first`, seed by seed; None without a seed that both have, finite."""
    pairs = [(ours[seed], first[seed]) for seed in sorted(ours.keys() & first.keys())]
    ratios = [mine / theirs for mine, theirs in pairs if theirs and math.isfinite(mine) and math.isfinite(theirs)]
    if not ratios:
        return None
    mean, lower, upper = t_interval([100 * (ratio - 1) for ratio in ratios])
    return Change(mean, lower, upper, len(ratios))


def seconds_against(ours: dict[int, dict], first: dict[int, dict]) -> tuple[dict[int, float], str]:
    """Seconds of trainings over those of the first method's, by seed; and why there are none where there are none.

    Only of trainings alone on a machine of one kind: runs that share a job have equal shares of its time.
    """
    ratios, why = {}, ""
    for seed in sorted(ours.keys() & first.keys()):
        here, there = ours[seed], first[seed]
        if here.get("together", 1) > 1 or there.get("together", 1) > 1:
            why = "trained together with others: no time of its own"
        elif any(here.get(name, 1) != there.get(name, 1) for name in SAME):
            why = "trained on another kind of machine than the first method"
        elif there["seconds"] > 0:
            ratios[seed] = here["seconds"] / there["seconds"]
    return ratios, "" if ratios else why


@dataclass(frozen=True)
class Point:
    """A method in a task: its changes against the first method, None where they were not measured."""

    label: str
    frequent: Change | None
    rare: Change | None


def points(definition: Definition, results: Results, entry: dict, experiment: str) -> list[Point]:
    """Every method but the first of a figure, in a task.

    entry: of the figure in the config, with the columns `frequent` and `rare`.
    """
    chosen = [choose(definition, results, family, experiment) for family in families(definition, entry)]
    chosen = [one for one in chosen if one is not None]
    made = []
    for one in chosen[1:]:
        changes = {}
        for name in ("frequent", "rare"):
            how = entry["columns"][name]
            first, ours = (
                measured(results, each.method, how, how["of"][experiment]) if each.method else {}
                for each in (chosen[0], one)
            )
            changes[name] = change(ours, first)
        made.append(Point(one.label, changes["frequent"], changes["rare"]))
    return made
