"""Methods held against each other: which candidate stands for a method, and what it changes against the first method.

A candidate is chosen on the validation text and shown on the test text. A change is in per cent of the first method's
number, seed by seed: methods of one seed saw the same batches.
"""

import math
import statistics
from dataclasses import dataclass, replace

from raretok.reporting.definition import Definition, Method
from raretok.reporting.results import Results
from raretok.reporting.statistics.intervals import t_interval

# By what candidates are chosen, one criterion for all methods and tasks: the perplexity of all of the validation text
# at the temperature that fits it, the least; seeds averaged.
CRITERION = {"metric": "fitted_perplexity", "group": "total", "split": "valid@best"}
# How caveats begin: of a choice while runs are missing, and of one among candidates that all diverged.
PROVISIONAL, DIVERGED = "the choice is provisional", "the chosen one diverged"
# What must be the same of two trainings for their seconds to be compared.
SAME = ("device", "processes", "together")


def is_caveat(remark: str) -> bool:
    """Whether a remark says that a choice is provisional, or among candidates that all diverged."""
    return remark.startswith((PROVISIONAL, DIVERGED))


@dataclass(frozen=True)
class Chosen:
    """The candidate that stands for a method in a task.

    label: of the method. method: the candidate, in the task's experiment and with the seeds that all candidates are to
    have; None where none was measured. words: its values. criterion: its mean perplexity over `seeds`, on which the
    measured candidates were held against each other. finished, tried: candidates of which a run was measured, and that
    there are. missing, runs: of all candidates, runs that were not measured, and that there are to be. diverged: seeds
    of the chosen candidate with a perplexity that is not finite.
    """

    label: str
    method: Method | None
    words: str
    criterion: float
    seeds: tuple[int, ...]
    finished: int
    tried: int
    missing: int
    runs: int
    diverged: int

    @property
    def is_provisional(self) -> bool:
        """Whether runs that are missing could still change the choice."""
        return self.missing > 0

    @property
    def caveats(self) -> list[str]:
        """What must be said wherever the choice is shown."""
        said = []
        if self.is_provisional:
            said.append(f"{PROVISIONAL}: {self.missing} of {self.runs} runs missing")
        if self.diverged:
            seeds = f"{self.diverged} of {len(self.method.seeds)} seeds"
            said.append(f"{DIVERGED} in {seeds}, as did every candidate in as many or more")
        return said


@dataclass(frozen=True)
class Change:
    """Mean change in per cent with its 95% t interval over `seeds` (None for one seed).

    Of a perplexity that is not finite in one of them it is infinite, without an interval.
    """

    mean: float
    lower: float | None
    upper: float | None
    seeds: int

    @property
    def is_finite(self) -> bool:
        """Whether it is a number in every seed."""
        return math.isfinite(self.mean)


def choose(definition: Definition, results: Results, family: dict, experiment: str) -> Chosen | None:
    """The candidate of a method in a task; None where the method is not trained in it.

    family: {label, methods: {candidate: its values in words}}. All candidates are judged on the same seeds. One that
    diverged in a seed is worse than all that did not, whatever its others say; where all diverged, it is the one that
    did in the fewest. While runs are missing the choice is provisional, and rests on the seeds that all candidates of
    which anything was measured have.
    """
    methods = {name: definition.method(name).within(experiment) for name in family["methods"]}
    trained = {name: method for name, method in methods.items() if method.is_trained_in(experiment)}
    if not trained:
        return None
    declared = set.intersection(*(set(method.seeds) for method in trained.values()))
    trained = {name: replace(method, seeds=tuple(sorted(declared))) for name, method in trained.items()}
    values = {name: found for name, method in trained.items() if (found := measured(results, method, CRITERION))}
    runs = len(trained) * len(declared)
    counts = {
        "finished": len(values),
        "tried": len(trained),
        "missing": runs - sum(map(len, values.values())),
        "runs": runs,
    }
    if not values:
        return Chosen(family["label"], None, "", math.nan, (), diverged=0, **counts)
    common = sorted(set.intersection(*map(set, values.values())))
    diverged = {name: sum(not math.isfinite(value) for value in found.values()) for name, found in values.items()}
    scores = {name: statistics.fmean(found[seed] for seed in common or found) for name, found in values.items()}
    # The first among equals, and where no seed was measured of all: grids begin with the published value.
    best = min(values, key=lambda name: (diverged[name], scores[name] if common else 0))
    label, words = family["label"], family["methods"][best]
    return Chosen(label, trained[best], words, scores[best], tuple(common), diverged=diverged[best], **counts)


def families(definition: Definition, entry: dict) -> list[dict]:
    """The methods of a table or figure as {label, methods: {candidate: its values in words}}.

    A method without a grid is its own only candidate.
    """
    named = entry.get("candidates") or {
        name: {"label": definition.method(name).label, "methods": {name: "as it is"}} for name in entry["methods"]
    }
    return list(named.values())


def measured(results: Results, method: Method, how: dict, group: str | None = None) -> dict[int, float]:
    """Values by seed of a column (`metric`, `split`, `group`) of a method in its experiment, of its own seeds alone."""
    found = results.per_seed(method, how["metric"], how["group"] if group is None else group, split=how["split"])
    return {seed: value for seed, value in found.items() if seed in method.seeds}


def change(ours: dict[int, float], first: dict[int, float]) -> Change | None:
    """By how many per cent `ours` is above `first`, seed by seed, over the seeds that both have.

    Where ours is not finite in one of them, the change is infinite, without an interval: the other seeds alone would
    flatter it. None without such a seed, and where `first` is not finite in one of them.
    """
    pairs = [(ours[seed], first[seed]) for seed in sorted(ours.keys() & first.keys())]
    if not pairs or not all(theirs and math.isfinite(theirs) for _, theirs in pairs):
        return None
    changes = [100 * (mine / theirs - 1) for mine, theirs in pairs]
    if not all(map(math.isfinite, changes)):
        return Change(math.inf, None, None, len(changes))
    mean, lower, upper = t_interval(changes)
    return Change(mean, lower, upper, len(changes))


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
    """A method in a task: its changes against the first method, None where they were not measured.

    is_provisional: whether its own choice is, or that of the first method. is_infinite: whether it diverged, or a
    perplexity is infinite in a seed.
    """

    label: str
    frequent: Change | None
    rare: Change | None
    is_provisional: bool
    is_infinite: bool

    @property
    def is_drawn(self) -> bool:
        """Whether there is a place for it."""
        return None not in (self.frequent, self.rare) and not self.is_infinite


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
        provisional = one.is_provisional or chosen[0].is_provisional
        infinite = one.diverged > 0 or any(found and not found.is_finite for found in changes.values())
        made.append(Point(one.label, **changes, is_provisional=provisional, is_infinite=infinite))
    return made
