"""Tables of generated texts (agg, tables 5 and 15): prefix, continuation by each method, distinct tokens."""

from pathlib import Path

from rarepapers.metrics.declared import better
from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.printed_places import MEAN, UNIQ
from rarepapers.reporting.results import Results, printed_numbers, summarise
from rarepapers.reporting.tables.cells import NOT_RUN, Cell, mark_best, numbers_of
from rarepapers.reporting.token_text import one_line

TEXT = "Text"
PREFIX = "Prefix"
OTHER_PREFIX = "the paper's number is for a different prefix"


def generated_cells(definition: Definition, item: str, results: Results, published: Path) -> list[Cell]:
    """Prefixes and continuations of the first seed; distinct tokens over all seeds, also as mean over all prefixes."""
    entry = definition.entry(item)
    printed = printed_numbers(published, definition.paper)
    methods = definition.methods_of(item)
    texts = {method.name: _texts(results, method) for method in methods}
    prefixes = next((found["prefixes"] for found in texts.values() if found), [])
    cells = []
    for k, ours in enumerate(entry["examples"], 1):
        cells.append(_text_cell(PREFIX, f"example{k}", prefixes, ours, ""))
        for method in methods:
            found = texts[method.name]
            note = f"seed {found['seed']}" if found else ""
            cells.append(_text_cell(method.label, f"example{k}", found["texts"] if found else [], ours, note))
            cells.append(_uniq_cell(definition, item, results, method, f"example{k}", printed))
    for method in methods:
        cells.append(_uniq_cell(definition, item, results, method, MEAN, printed))
    return mark_best(cells)


def metric_group(entry: dict, group: str) -> str:
    """The metric's group for a table's group: the number of our example in the place of a printed one."""
    return "mean" if group == MEAN else f"example{entry['examples'][int(group.removeprefix('example')) - 1]}"


def _texts(results: Results, method: Method) -> dict | None:
    for seed, arrays in results.seeds_with_arrays(method):
        if "best.generated.texts" in arrays:
            names = ("prefixes", "texts")
            return {"seed": seed} | {name: list(map(str, arrays[f"best.generated.{name}"])) for name in names}
    return None


def _text_cell(row: str, group: str, texts: list[str], ours: int, note: str) -> Cell:
    text = one_line(texts[ours - 1]) if len(texts) >= ours else None
    return Cell(row, TEXT, group, value=text, note=note if text is not None else NOT_RUN)


def _uniq_cell(definition: Definition, item: str, results: Results, method: Method, group: str, printed: dict) -> Cell:
    entry = definition.entry(item)
    summary = summarise(results.per_seed(method, "generated_uniq", metric_group(entry, group)))
    number = printed.get((item, method.printed_label, UNIQ, group))
    return Cell(
        row=method.label,
        column=UNIQ,
        group=group,
        **numbers_of(summary, number, definition),
        note="; ".join(filter(None, [OTHER_PREFIX if number else "", "" if summary else NOT_RUN])),
        remarks=(OTHER_PREFIX,) if number else (),
        format=".1f",
        direction=better("generated_uniq"),
    )
