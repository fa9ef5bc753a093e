"""Comparison of methods: the chosen candidate of each method, and its changes against the first method.

Candidates are chosen on the validation text and reported on the test text. A change is in per cent of the first
method's number, paired by seed: methods with one seed saw the same batches.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from rarepapers.reporting.cost import CPU
from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.results import Results
from rarepapers.reporting.statistics.intervals import t_interval
from rarepapers.reporting.statistics.over_seeds import mean_of, not_finite

# Selection criterion for candidates of all methods and tasks: the lowest perplexity of the whole validation text at
# its fitted temperature, averaged over seeds.
CRITERION = {"metric": "fitted_perplexity", "group": "total", "split": "valid@best"}
# Prefixes of caveats: for a choice with missing runs, and for one among candidates that all diverged.
PROVISIONAL, DIVERGED = "the choice is provisional", "the chosen one diverged"
# The columns whose changes are shown.
ROLES = ("frequent", "rare")
# Change in per cent of a perplexity that is 0, which is no gain of any size.
LOWEST = -100.0
# Properties that two trainings must share for their times to be comparable.
SAME = ("device", "together")


def is_caveat(remark: str) -> bool:
    """Whether a remark is a caveat: a provisional choice, or one among candidates that all diverged."""
    return remark.startswith((PROVISIONAL, DIVERGED))


@dataclass(frozen=True)
class Chosen:
    """The candidate chosen for a method in a task.

    label: of the method. method: the candidate, in the task's experiment and with the seeds that all candidates should
    have; None if nothing was measured. words: its grid values. criterion: its mean perplexity over `seeds`, on which
    the measured candidates were compared. finished, tried: numbers of measured and of all candidates. missing, runs:
    numbers of missing and of expected runs of all candidates. diverged: seeds of the chosen candidate whose perplexity
    is not finite.
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
        """Whether missing runs could still change the choice; never with a single candidate."""
        return self.missing > 0 and self.tried > 1

    @property
    def caveats(self) -> list[str]:
        """Caveats to show with the choice."""
        said = []
        if self.is_provisional:
            said.append(f"{PROVISIONAL}: {self.missing} of {self.runs} runs missing")
        if self.diverged:
            seeds = f"{self.diverged} of {len(self.method.seeds)} seeds"
            said.append(f"{DIVERGED} in {seeds}; every candidate diverged in as many seeds or more")
        return said


class Change(NamedTuple):
    """Mean change in per cent over `seeds`; not finite if it is not for one of them, which `not_finite` names."""

    mean: float
    interval: tuple[float, float] | None  # 95% t interval, None for one seed and a change that is not finite
    seeds: int
    not_finite: str = ""


def chosen_candidate(definition: Definition, results: Results, family: dict, experiment: str) -> Chosen | None:
    """The candidate of a method in a task; None if the method is not trained in it.

    family: {label, methods: {candidate: its values in words}}. All candidates are compared on the same seeds. A
    candidate that diverged in a seed ranks below all that did not; if all diverged, the one with the fewest diverged
    seeds is chosen. While runs are missing the choice is provisional and uses the seeds that all measured candidates
    share.
    """
    methods = {name: definition.methods[name].within(experiment) for name in family["methods"]}
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
    scores = {name: mean_of(found[seed] for seed in common or found) for name, found in values.items()}
    # Ties, and candidates without a common seed, go to the first: grids begin with the published value.
    best = min(values, key=lambda name: (diverged[name], scores[name] if common else 0))
    label, words = family["label"], family["methods"][best]
    return Chosen(label, trained[best], words, scores[best], tuple(common), diverged=diverged[best], **counts)


def families(definition: Definition, entry: dict) -> list[dict]:
    """The methods of a table or figure as {label, methods: {candidate: its values in words}}.

    A method without a grid is its only candidate.
    """
    named = entry.get("candidates") or {
        name: {"label": definition.methods[name].label, "methods": {name: "as it is"}} for name in entry["methods"]
    }
    return list(named.values())


def measured(results: Results, method: Method, how: dict, group: str | None = None) -> dict[int, float]:
    """Values by seed of a column (`metric`, `split`, `group`) of a method in its experiment, for its own seeds."""
    found = results.per_seed(method, how["metric"], how["group"] if group is None else group, split=how["split"])
    return {seed: value for seed, value in found.items() if seed in method.seeds}


def percent_change(ours: dict[int, float], first: dict[int, float]) -> Change | None:
    """By how many per cent `ours` is above `first`, paired by seed, over the seeds that both have.

    If it is not finite in one of them, the mean is not finite and has no interval: the other seeds alone would be
    biased. A change from 0, or from a number that is not finite, is undefined. None without such a seed.
    """
    seeds = sorted(ours.keys() & first.keys())
    if not seeds:
        return None
    changes = {seed: _change(ours[seed], first[seed]) for seed in seeds}
    found = t_interval(list(changes.values()))
    return Change(found.mean, found.bounds, len(seeds), not_finite(changes))


def _change(mine: float, theirs: float) -> float:
    return 100 * (mine / theirs - 1) if theirs and math.isfinite(theirs) else math.nan


def seconds_against(ours: dict[int, dict], first: dict[int, dict]) -> tuple[dict[int, float], str]:
    """Training times relative to the first method's, by seed, and the reason if there are none.

    CPU time on CPUs, which other processes hardly change; wall time on GPUs. Only for trainings on the same kind of
    machine, each in a job of its own, because runs of one job have equal shares of its time.
    """
    ratios, why = {}, ""
    for seed in sorted(ours.keys() & first.keys()):
        here, there = ours[seed], first[seed]
        on_cpu = here["device"].startswith(CPU)
        unit = "cpu_seconds" if on_cpu else "seconds"
        if here.get("together", 1) > 1 or there.get("together", 1) > 1:
            why = "trained in a job with other runs: no separate time"
        elif any(here.get(name, 1) != there.get(name, 1) for name in SAME):
            why = "trained on a different kind of machine from the first method"
        elif on_cpu and not (here.get(unit) and there.get(unit)):
            why = "trained before CPU time was recorded"
        elif there[unit] > 0:
            ratios[seed] = here[unit] / there[unit]
    return ratios, "" if ratios else why


def changes_against(results: Results, columns: dict, experiment: str, one: Chosen, first: Chosen) -> dict:
    """The changes of a chosen method against the first one by role, None if not measured."""
    found = {}
    for role in ROLES:
        how = columns[role]
        ours, theirs = (
            measured(results, each.method, how, how["of"][experiment]) if each.method else {} for each in (one, first)
        )
        found[role] = percent_change(ours, theirs)
    return found


@dataclass(frozen=True)
class Point:
    """A method in a task: its changes against the first method, None if not measured.

    is_provisional: whether its choice or that of the first method is. not_finite: the seeds in which it diverged or a
    change is not finite, in words; empty if there are none.
    """

    label: str
    frequent: Change | None
    rare: Change | None
    is_provisional: bool
    not_finite: str

    @property
    def is_drawn(self) -> bool:
        """Whether the point has finite coordinates."""
        return None not in (self.frequent, self.rare) and not self.not_finite


def figure_points(definition: Definition, results: Results, entry: dict, experiment: str) -> list[Point]:
    """The points of a figure in a task: every method but the first.

    entry: the figure's config entry, with the columns `frequent` and `rare`.
    """
    chosen = [chosen_candidate(definition, results, family, experiment) for family in families(definition, entry)]
    chosen = [one for one in chosen if one is not None]
    made = []
    for one in chosen[1:]:
        changes = changes_against(results, entry["columns"], experiment, one, chosen[0])
        provisional = one.is_provisional or chosen[0].is_provisional
        reasons = [f"{role}: {found.not_finite}" for role, found in changes.items() if found and found.not_finite]
        if one.diverged and not reasons:
            reasons = [f"diverged in {one.diverged} of {len(one.method.seeds)} seeds"]
        if any(found and found.mean <= LOWEST for found in changes.values()):
            reasons.append("a perplexity of 0 or less")
        made.append(Point(one.label, **changes, is_provisional=provisional, not_finite="; ".join(reasons)))
    return made
