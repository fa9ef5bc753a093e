"""Table 3 of stop_jostling: margins of GPT-2 at random initialisation and pre-trained."""

from pathlib import Path

from rarepapers.reporting.definition import Definition
from rarepapers.reporting.printed_places import GPT2_COLUMNS
from rarepapers.reporting.results import Results, gpt2_values, printed_numbers, summarise
from rarepapers.reporting.tables.cells import NOT_PRINTED, NOT_RUN, Cell, numbers_of

NO_WEIGHTS = "the pre-trained weights were not downloaded"


def gpt2_cells(definition: Definition, item: str, results: Results, published: Path) -> list[Cell]:
    """Effective margin and alpha of GPT-2 (stop_jostling, table 3), from `gpt2/<repository>.json`."""
    printed = printed_numbers(published, definition.paper)
    formats = {"width": ".0f", "margin": ".2f", "alpha": ".3f"}
    cells = []
    for row, model in definition.gpt2["models"].items():
        measured = results.gpt2(model["repository"])
        for column, (_, key) in GPT2_COLUMNS.items():
            summary = summarise(gpt2_values(measured, column))
            number = printed.get((item, row, column, ""))
            # Only a measurement without weights gives a reason.
            absent = NO_WEIGHTS if measured and measured.get("reason") else NOT_RUN
            missing = absent if summary is None else ""
            notes = [number.note if number else NOT_PRINTED, missing]
            cells.append(
                Cell(
                    row=row,
                    column=column,
                    **numbers_of(summary, number, definition),
                    note="; ".join(filter(None, notes)),
                    remarks=(missing,) if missing and missing != NOT_RUN else (),
                    format=formats.get(key, ".2g"),
                )
            )
    return cells
