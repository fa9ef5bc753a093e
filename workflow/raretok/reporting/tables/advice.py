"""Which method to use when: one paragraph, made of a comparison's cells by plain rules.

A method counts as better for rare tokens where the 95% interval of its change, over seeds, lies below 0; as costing
frequent ones where that interval lies above 0. Of those better for rare tokens, one that another beats in both means is
left out (Pareto). Nothing is said from one seed, nor from a choice that runs which are missing could still change.
"""

from dataclasses import dataclass

from raretok.reporting.definition import Definition
from raretok.reporting.tables.cells import Cell, blocks
from raretok.reporting.tables.comparison_table import CHOSEN, ROLES, change_column
from raretok.reporting.tables.method_comparison import DIVERGED, PROVISIONAL, Change, families

UNCORRECTED = (
    "Intervals are of seeds, not of texts, and not corrected for the number of methods: by chance alone one in forty "
    "would seem better."
)


@dataclass(frozen=True)
class Case:
    """A method in a task with both of its changes."""

    label: str
    frequent: Change
    rare: Change

    @property
    def is_free(self) -> bool:
        """Better for rare tokens, and no loss on frequent ones that the seeds show."""
        return self.rare.is_less and not self.frequent.is_more

    @property
    def is_judged(self) -> bool:
        """Whether both changes have intervals: one seed has none."""
        return None not in (self.frequent.lower, self.rare.lower)

    def is_beaten_by(self, other: "Case") -> bool:
        """Whether another one is at least as good in both means, and better in one."""
        ours, theirs = (self.frequent.mean, self.rare.mean), (other.frequent.mean, other.rare.mean)
        return theirs[0] <= ours[0] and theirs[1] <= ours[1] and theirs != ours

    def __str__(self) -> str:
        return f"{self.label} ({self.rare.mean:+.1f}% rare, {self.frequent.mean:+.1f}% frequent)"


@dataclass(frozen=True)
class Task:
    """What a task's cells say of the methods.

    first: label of the one that the others are held against. barred: why nothing can be held against it, and nothing
    else is gathered, or an empty string. cases: methods with a final choice and both changes. infinite, provisional,
    missing, unmeasured: labels of methods that diverged or have an infinite change, whose choice is not final, that
    were not run, and without one of the changes (a text may have no token of a group).
    """

    first: str
    barred: str
    cases: list[Case]
    infinite: list[str]
    provisional: list[str]
    missing: list[str]
    unmeasured: list[str]

    @property
    def is_finished(self) -> bool:
        """Whether no run is missing."""
        return not (self.barred or self.provisional or self.missing)


def advice(definition: Definition, item: str, cells: list[Cell]) -> list[str]:
    """The paragraph above a table of kind `comparison`; its numbers are changes of perplexity, so less is better."""
    labels = [family["label"] for family in families(definition, definition.entry("tables", item))]
    tasks = {heading: task_of(found) for heading, found in blocks(cells)}
    if not tasks:
        return ["Nothing of this comparison is part of this scale."]
    said = [f"{heading}: {of_task(task, len(labels))}" for heading, task in tasks.items()]
    free = [{case.label for case in task.cases if case.is_free} for task in tasks.values()]
    if len(tasks) > 1 and all(any(case.is_judged for case in task.cases) for task in tasks.values()):
        everywhere = [label for label in labels if all(label in found for found in free)]
        number, gained = f"all {len(tasks)} tasks", "gained on rare tokens without a loss on frequent ones"
        if everywhere:
            said.append(f"In {number}: {listed(everywhere)} {gained}.")
        else:
            which = "method" if all(task.is_finished for task in tasks.values()) else "method that is finished"
            said.append(f"No {which} {gained} in {number}.")
    return [*said, UNCORRECTED] if any(free) else said


def task_of(cells: list[Cell]) -> Task:
    """What the cells of a task say."""
    rows: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        rows.setdefault(cell.row.removesuffix(f" [{cell.reading}]"), {})[cell.column] = cell
    first = next(iter(rows))
    missing = [label for label, columns in rows.items() if columns[CHOSEN].value is None]
    words = caveat(rows[first][CHOSEN], PROVISIONAL, DIVERGED)
    barred = f"{first} was not run" if first in missing else f"of {first}, {words}" if words else ""
    cases, infinite, provisional, unmeasured = [], [], [], []
    for label, columns in rows.items():
        found = [columns[change_column(role, first)] for role in ROLES]
        if barred or label in (first, *missing):
            continue
        if words := caveat(columns[CHOSEN], PROVISIONAL):
            provisional.append(f"{label} ({words.removeprefix(PROVISIONAL).strip(': ')})")
        elif any(cell.value is None for cell in found):
            unmeasured.append(label)
        else:
            changes = [_change(cell) for cell in found]
            if caveat(columns[CHOSEN], DIVERGED) or not all(change.is_finite for change in changes):
                infinite.append(label)
            else:
                cases.append(Case(label, *changes))
    return Task(first, barred, cases, infinite, provisional, missing, unmeasured)


def caveat(cell: Cell, *kinds: str) -> str:
    """What must be said of a choice, of some kinds; an empty string for nothing."""
    return next((remark for remark in cell.remarks if remark.startswith(kinds)), "")


def of_task(task: Task, methods: int) -> str:
    """What is said of one task with so many methods."""
    if not (task.cases or task.infinite):
        why = task.barred or f"nothing but {task.first} was run"
        if task.provisional:
            why = f"no choice but that of {task.first} is final"
        elif task.unmeasured:
            why = "frequent or rare tokens were not measured"
        return f"{why}, so that nothing can be said."
    judged = [case for case in task.cases if case.is_judged]
    single = [case for case in task.cases if not case.is_judged]
    words = []
    if judged:
        words.append(("" if task.is_finished else "of what is finished, ") + of_judged(judged, task.first))
    if single:
        who = "all" if not judged else listed([case.label for case in single])
        words.append(f"one seed of {who}: inconclusive, nothing is recommended.")
    if task.infinite:
        words.append(f"of infinite perplexity in some seed, and not to be used: {listed(task.infinite)}.")
    if task.provisional:
        words.append(f"not judged, since {PROVISIONAL}: {listed(task.provisional)}.")
    if task.missing:
        number = len(task.missing)
        words.append(f"{number} of {methods} methods {'was' if number == 1 else 'were'} not run.")
    return " ".join(word[0].upper() + word[1:] if k else word for k, word in enumerate(words))


def of_judged(cases: list[Case], first: str) -> str:
    """What is said of the methods that have intervals."""
    better = [case for case in cases if case.rare.is_less]
    if not better:
        return f"no method is better than {first} for rare tokens by more than its seeds differ; use {first}."
    front = sorted(
        (case for case in better if not any(case.is_beaten_by(other) for other in better)),
        key=lambda case: case.rare.mean,
    )
    free = [case for case in front if case.is_free]
    costly = [case for case in front if not case.is_free]
    words = []
    if free:
        words.append(f"use {free[0]}, which costs frequent tokens nothing that the seeds show")
    else:
        words.append("what helps rare tokens costs frequent ones")
    if costly:
        more = "where rare tokens matter more, " if free else "at that price use "
        words.append(f"{more}{listed([str(case) for case in costly])}")
    harmful = [case.label for case in cases if case.rare.is_more]
    if harmful:
        words.append(f"worse than {first} for rare tokens: {listed(harmful)}")
    return "; ".join(words) + "."


def listed(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _change(cell: Cell) -> Change:
    lower, upper = cell.interval or (None, None)
    return Change(cell.value, lower, upper, cell.seeds)
