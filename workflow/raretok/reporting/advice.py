"""Which method to use when: one paragraph, made of a comparison's cells by plain rules.

A method counts as better for rare tokens where the 95% interval of its change, over seeds, lies below 0; as costing
frequent ones where that interval lies above 0. Of those better for rare tokens, one that another beats in both means is
left out (Pareto). Nothing is said from one seed.
"""

from dataclasses import dataclass

from raretok.reporting.comparison import Change, families
from raretok.reporting.comparison_table import CHOSEN, ROLES, change_column
from raretok.reporting.definition import Definition
from raretok.reporting.table_kinds import Cell, blocks

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


def advice(definition: Definition, item: str, cells: list[Cell]) -> list[str]:
    """The paragraph above a table of kind `comparison`; its numbers are changes of perplexity, so less is better."""
    labels = [family["label"] for family in families(definition, definition.entry("tables", item))]
    said, free, complete = [], [], True
    for heading, found in blocks(cells):
        cases, first, missing, unmeasured = cases_of(found)
        said.append(f"{heading}: {of_task(cases, first, missing, unmeasured, len(labels))}")
        free.append({case.label for case in cases if case.is_free})
        complete = complete and any(case.is_judged for case in cases)
    if not said:
        return ["Nothing of this comparison is part of this scale."]
    if complete and len(said) > 1:
        everywhere = [label for label in labels if all(label in found for found in free)]
        said.append(
            f"In all {len(said)} tasks: {listed(everywhere)} gained on rare tokens without a loss on frequent ones."
            if everywhere
            else f"No method gained on rare tokens without a loss on frequent ones in all {len(said)} tasks."
        )
    return [*said, UNCORRECTED] if any(free) else said


def cases_of(cells: list[Cell]) -> tuple[list[Case], str, list[str], list[str]]:
    """The methods of a task with both changes; the label of the first one; of those not run; of those without a change.

    A text may have no token of a group.
    """
    rows: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        rows.setdefault(cell.row.removesuffix(f" [{cell.reading}]"), {})[cell.column] = cell
    first = next(iter(rows))
    missing = [label for label, columns in rows.items() if columns[CHOSEN].value is None]
    cases, unmeasured = [], []
    for label, columns in rows.items():
        found = [columns[change_column(role, first)] for role in ROLES]
        if label in (first, *missing):
            continue
        if any(cell.value is None for cell in found):
            unmeasured.append(label)
        else:
            cases.append(Case(label, *(_change(cell) for cell in found)))
    return cases, first, missing, unmeasured


def of_task(cases: list[Case], first: str, missing: list[str], unmeasured: list[str], methods: int) -> str:
    """What is said of one task."""
    if not cases:
        why = f"nothing but {first} was run"
        if first in missing:
            why = f"{first} was not run"
        elif unmeasured:
            why = "frequent or rare tokens were not measured"
        return f"{why}, so that nothing can be said."
    words = []
    judged = [case for case in cases if case.is_judged]
    single = [case for case in cases if not case.is_judged]
    if judged:
        words.append(of_judged(judged, first))
    if single:
        who = "all" if not judged else listed([case.label for case in single])
        words.append(f"one seed of {who}: inconclusive, nothing is recommended.")
    if missing:
        words.append(f"{len(missing)} of {methods} methods {'was' if len(missing) == 1 else 'were'} not run.")
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
