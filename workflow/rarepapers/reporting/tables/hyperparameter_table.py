"""Tables of hyper-parameters: printed values, settings of this scale, and values derived by its runs."""

import math
import re
from pathlib import Path

from rarepapers.reporting.definition import Definition
from rarepapers.reporting.results import Printed, Results, read_published
from rarepapers.reporting.tables.cells import NOT_PRINTED, NOT_RUN, Cell, difference

THOUSAND = {"k": 1e3, "M": 1e6}


def hyperparameter_cells(definition: Definition, item: str, results: Results, published: Path) -> list[Cell]:
    """One row per setting and one column per experiment; a column without an experiment shows printed values only."""
    entry = definition.entry(item)
    table = read_published(published, "hyperparameters", definition.paper)
    table = table[table["item"] == item]
    # With one experiment the column needs no name; several are named as in the paper.
    columns = entry.get("experiments") or {"value": entry["experiment"]}
    printed = {(row.setting if "experiments" in entry else "value", row.name): row.value for row in table.itertuples()}
    facts = {
        column: _facts(definition, results, experiment, entry.get("methods", []))
        for column, experiment in columns.items()
    }
    return [
        _cell(definition, name, column, printed.get((column, name), ""), expression, facts[column])
        for name, expression in entry["settings"].items()
        for column in columns
    ]


def _facts(definition: Definition, results: Results, experiment: str | None, methods: list[str]) -> dict:
    """The names that expressions can use: the experiment's settings, `runs.<method>`, and `run`, the first of these.

    A run is its record plus `types`, its vocabulary size.
    """
    if experiment not in definition.settings:  # printed values only, or the scale leaves the experiment out
        return {"runs": {}, "run": {}}
    runs = {}
    for method in (definition.methods[name].within(experiment) for name in methods):
        record = results.training(method)
        if record is not None:
            arrays = next((arrays for _, arrays in results.seeds_with_arrays(method)), {})
            runs[method.name] = record | ({"types": len(arrays["counts"])} if "counts" in arrays else {})
    return definition.settings[experiment] | {"runs": runs, "run": next(iter(runs.values()), {})}


def _cell(definition: Definition, name: str, column: str, text: str, expression: str, facts: dict) -> Cell:
    value = value_of(expression, facts)
    theirs = number_of(text)
    differs = bool(text) and value is not None and not equals_printed(text, value)
    gap = None
    if isinstance(value, float) and theirs is not None:
        gap = difference(definition, value, Printed(text, theirs, ""))
    notes = [expression, "" if text else NOT_PRINTED, NOT_RUN if value is None else ""]
    return Cell(
        row=name,
        column=column,
        published=text,
        value=value,
        difference=gap,
        note="; ".join(filter(None, [*notes, "differs from the paper" if differs else ""])),
        remarks=("differs from the paper",) if differs else (),
        format=".0f" if isinstance(value, float) and value.is_integer() else "g",
    )


def value_of(expression: str, facts: dict) -> float | str | None:
    """The value of an expression; None if a setting that it names is missing.

    `a.path`, `4 * a.path * another.path`, `{a.path}-{another.path}` as text; `first or second` is the first that
    exists. Paths are dotted keys and list positions. `| value` gives the default for a finished run without the
    setting, because settings leave out parameters at their default.
    """
    values = (_one_value(part, facts) for part in expression.split(" or "))
    return next((value for value in values if value is not None), None)


def _one_value(expression: str, facts: dict) -> float | str | None:
    if "{" in expression:
        parts = {path: _at_path(facts, path) for path in re.findall(r"\{(.*?)\}", expression)}
        if None in parts.values():
            return None
        return re.sub(r"\{(.*?)\}", lambda match: str(parts[match[1]]), expression)
    path, _, default = expression.partition(" | ")
    parts = path.split(" * ")
    found = [float(part) if re.fullmatch(r"[\d.]+", part) else _at_path(facts, part) for part in parts]
    if None in found and default:
        keys = path.split(".")
        found = [float(default)] if _at_path(facts, ".".join(keys[:2])) else found
    if None in found:
        return None
    if len(found) == 1 and isinstance(found[0], str):
        return found[0]
    return float(math.prod(found))


def _at_path(settings, path: str):
    for key in path.split("."):
        try:
            settings = settings[int(key)] if isinstance(settings, list) else settings[key]
        except (KeyError, IndexError, ValueError, TypeError):
            return None
    return settings


def number_of(text: str) -> float | None:
    """The number printed as 0.1, 7e-4, 32k or 42M; None for anything else."""
    match = re.fullmatch(r"([-+.\de]+)([kM]?)", text)
    try:
        return float(match[1]) * THOUSAND.get(match[2], 1) if match else None
    except ValueError:
        return None


def equals_printed(text: str, value: float | str) -> bool:
    """Whether `value` equals the printed text to its digits; 32k may mean 32 x 1,024."""
    printed = number_of(text)
    if printed is None or isinstance(value, str):
        return text.replace(" ", "").lower() == str(value).replace(" ", "").lower()
    unit = THOUSAND.get(text[-1])
    if unit is None:
        return math.isclose(printed, value)
    return round(value / unit) == round(printed / unit) or value == printed / 1000 * 1024
