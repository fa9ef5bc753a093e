"""What a table of kind `readings` says in words: its question, and what the numbers answer, by plain rules.

The answer rests on one column and group, which the config names before anything is run: of many numbers some differ by
chance. One seed answers nothing.
"""

from itertools import combinations

from raretok.reporting.definition import Definition
from raretok.reporting.tables.readings_table import ReadingCell, decides, reached


def reading_sentences(definition: Definition, item: str, cells: list[ReadingCell]) -> list[str]:
    """The question; one sentence a further reading; whether methods keep their order; how many seeds reach a number."""
    entry = definition.entry("tables", item)
    deciding = [cell for cell in cells if decides(entry, cell.column, cell.group)]
    several = len({cell.subject for cell in deciding}) > 1
    where = " of ".join(filter(None, (entry["decides"]["column"], entry["decides"].get("group", ""))))
    said = [entry["question"]]
    for way in dict.fromkeys(cell.way for cell in deciding if cell.against):
        compared = [cell for cell in deciding if cell.against and cell.way == way]
        answer = "; ".join(_answers(definition, compared, several))
        said.append(f"Reading {way} against {compared[0].against} ({where}): {answer}.")
    if isinstance(entry["readings"], dict):
        said += _order(where, [cell for cell in deciding if not cell.against])
    if "reach" in entry["decides"]:
        said += _reached(entry["decides"]["reach"], where, [cell for cell in deciding if not cell.against], several)
    return said


def _answers(definition: Definition, cells: list[ReadingCell], several: bool) -> list[str]:
    """What came out for each subject, those of the same outcome together."""
    outcomes: dict[str, list[str]] = {}
    for cell in cells:
        outcome, detail = _outcome(definition, cell)
        outcomes.setdefault(outcome, []).append(" ".join(filter(None, [cell.subject if several else "", detail])))
    link = " for " if several else ", "
    return [link.join(filter(None, [outcome, ", ".join(details)])) for outcome, details in outcomes.items()]


def _outcome(definition: Definition, cell: ReadingCell) -> tuple[str, str]:
    """What a difference says, and the numbers that it says it by."""
    if cell.value is None:
        return cell.note, ""
    own = format(cell.value, cell.format)
    theirs = f"printed {cell.published}" if cell.difference is not None else ""
    if cell.interval is None:
        if cell.seeds > 1 and not any(cell.by_seed):
            return f"the same number in all of {cell.seeds} seeds", f"({theirs})" if theirs else ""
        alike = "one seed" if cell.seeds == 1 else f"the same difference in all of {cell.seeds} seeds"
        return f"{alike}, inconclusive", f"{own} ({theirs})" if theirs else own
    lower, upper = cell.interval
    if theirs:
        theirs += f", {'inside' if lower <= cell.value - cell.difference <= upper else 'outside'} the interval"
    seeds = f"{cell.seeds} paired seeds"
    bounds = f"95% interval {format(lower, cell.format)} to {format(upper, cell.format)}, {seeds}"
    if lower > 0 or upper < 0:
        return "the readings differ", f"{own} ({'; '.join(filter(None, [bounds, theirs]))})"
    largest = f"none larger than {format(max(-lower, upper), cell.format.removeprefix('+'))}"
    return "no difference shown", f"{own} ({'; '.join(filter(None, [bounds, largest, theirs]))})"


def _order(where: str, cells: list[ReadingCell]) -> list[str]:
    """Whether methods that are read in the same ways stand in the same order in all of them."""
    means: dict[str, dict[str, float]] = {}
    for cell in cells:
        if cell.value is not None:
            means.setdefault(cell.subject, {})[cell.way] = cell.value
    ways = list(dict.fromkeys(cell.way for cell in cells))
    complete = [found for found in means.values() if len(found) == len(ways)]
    pairs = list(combinations(complete, 2))
    if not pairs:
        return []
    changed = sum(len({(a[way] > b[way]) - (a[way] < b[way]) for way in ways}) > 1 for a, b in pairs)
    outcome = f"{changed} of {len(pairs)} pairs change places" if changed else "their order is the same in all readings"
    one = all(cell.seeds <= 1 for cell in cells)
    by = f"{where} of one seed, inconclusive" if one else f"the mean over seeds of {where}"
    return [f"Of the {len(complete)} methods that were run, by {by}: {outcome}."]


def _reached(reach: float, where: str, cells: list[ReadingCell], several: bool) -> list[str]:
    """How many seeds of each reading have at least `reach`, and their spread."""
    found = []
    for cell in (cell for cell in cells if cell.by_seed):
        name = f"{cell.subject}, {cell.way}" if several else cell.way
        spread = "" if cell.spread is None else f", standard deviation {format(cell.spread, cell.format)}"
        found.append(f"{name}: {reached(cell.by_seed, reach)} of {cell.seeds}{spread}")
    return [f"Seeds whose {where} is at least {reach:g}: {'; '.join(found)}."] if found else []
