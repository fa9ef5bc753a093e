"""Rendering of tables as GitHub Markdown and as LaTeX (booktabs)."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rarepapers.reporting import token_text
from rarepapers.reporting.definition import Definition
from rarepapers.reporting.statistics.over_seeds import number_text
from rarepapers.reporting.table_layout import layout
from rarepapers.reporting.tables.cells import NOT_MEASURED, NOT_RUN, Cell, blocks
from rarepapers.reporting.tables.neighbour_table import OTHER, PRINTED, RARE
from rarepapers.reporting.tables.readings_table import ReadingCell

# Maximum length of displayed text; the csv has the full text.
MARKDOWN_CHARACTERS, LATEX_CHARACTERS = 400, 250
# Columns with texts longer than this are set as paragraphs.
PROSE_CHARACTERS = 60
# Numbers from this on are shown without decimals.
NO_DECIMALS = 1000
INFINITE = {"inf": "$\\infty$", "+inf": "$+\\infty$", "-inf": "$-\\infty$"}
READINGS = "[bracket]: another reading of the printed row."


def number(cell: Cell) -> str:
    """A cell's measured value as text, with its interval; an en dash if missing."""
    if cell.value is None:
        return "–"
    if isinstance(cell.value, str):
        return cell.value
    own = _digits(cell.value, cell)
    if cell.interval is None:
        return own
    lower, upper = (_digits(bound, cell) for bound in cell.interval)
    return f"{own} [{lower}, {upper}]"


def spread(cell: Cell) -> str:
    """The standard deviation of a cell over seeds as shown; empty for one seed, and where all seeds agree."""
    if not cell.spread:
        return ""
    shown = _digits(cell.spread, cell)
    return shown if float(shown) else f"<{shown[:-1]}1"


def _digits(value: float, cell: Cell) -> str:
    """One of a cell's numbers: without decimals if the cell's is 1,000 or more, because other seeds change them."""
    form = re.sub(r"\.\df$", ".0f", cell.format) if abs(cell.value) >= NO_DECIMALS else cell.format
    return number_text(value, form)


def shortened(text: str, characters: int) -> str:
    """`text` shortened to that many characters, at a blank if possible."""
    if len(text) <= characters:
        return text
    return text[: characters - 1].rsplit(" ", 1)[0] + "…"


def prose_columns(cells: list[Cell]) -> set[str]:
    """The columns that hold texts rather than numbers or names."""
    return {cell.column for cell in cells if isinstance(cell.value, str) and len(cell.value) > PROSE_CHARACTERS}


def legend(definition: Definition, cells: list[Cell]) -> list[str]:
    """Explanations of the table's marks, one sentence each."""
    cells = [cell for cell in cells if cell.block != PRINTED]
    seeds = max((cell.seeds for cell in cells), default=0)
    sentences = []
    if any(cell.spread for cell in cells):
        alike = all(cell.seeds in (0, seeds) for cell in cells)
        without = "a number without ± has one seed, or is the same in all"
        over = f"{seeds} seeds" if alike else f"the row's seeds, at most {seeds}; {without}"
        sentences.append(f"Mean ± sample standard deviation over {over}.")
    elif any(cell.spread == 0 for cell in cells):
        sentences.append(f"The same in all {seeds} seeds.")
    elif any(cell.seeds for cell in cells):
        sentences.append("One seed." if seeds == 1 else f"First of {seeds} seeds.")
    bounds = ", with its 95% t interval in brackets" if any(cell.interval for cell in cells) else ""
    if bounds or any(isinstance(cell, ReadingCell) and cell.against and cell.seeds for cell in cells):
        sentences.append(f"a - b: mean difference, paired by seed{bounds}.")
    printed = any(cell.published for cell in cells)
    if printed:
        sentences.append("In parentheses: the paper's value.")
    if any(cell.best for cell in cells):
        sentences.append("Bold: the best row, where its 95% interval is clear of all others.")
    if printed and any("[" in cell.row for cell in cells):
        sentences.append(READINGS)
    if any(isinstance(cell.value, str) and RARE in cell.value for cell in cells):
        sentences.append(f"{RARE}: a token of the rare group. ␣: a blank.")
    if any(isinstance(cell.value, str) and OTHER in cell.value for cell in cells):
        sentences.append(f"{OTHER}: a token of the other language, the one in which it is more frequent.")
    missing = [cell.note for cell in cells if cell.value is None]
    if missing:
        reasons = [reason for reason in (NOT_RUN, NOT_MEASURED) if any(reason in note for note in missing)]
        sentences.append(f"–: {' or '.join(reasons) or 'not defined'}.")
    if not definition.comparable and definition.printed:
        sentences.append("This scale's numbers are not comparable with the paper's.")
    return sentences


def remarks(cells: list[Cell]) -> list[str]:
    """Remarks on cells, grouped by text, as sentences.

    Rows of a further grid are named without the bracket of that grid if the remark is true of their row in all grids.
    """
    names = {cell.row: plain.row for cell, plain in zip(cells, under_heading(cells), strict=True)}
    gathered: dict[str, dict[str, list[str]]] = {}
    for cell in cells:
        place = " ".join(filter(None, [cell.column, cell.group]))
        for remark in cell.shown_remarks:
            gathered.setdefault(remark, {}).setdefault(cell.row, []).append(place)
    cells_in = Counter(cell.row for cell in cells)
    lines = []
    for remark, rows in gathered.items():
        alike: dict[str, list[str]] = {}
        for row, places in rows.items():
            where = "" if len(places) == cells_in[row] else f" ({', '.join(places)})"
            alike.setdefault(where, []).append(row)
        told = (", ".join(_merged(found, names)) + where for where, found in alike.items())
        lines.append(f"{'; '.join(told)}: {remark}.")
    return lines


def _merged(rows: list[str], names: dict[str, str]) -> list[str]:
    """The rows, by their names without the bracket of their grid where `rows` has them of all grids."""
    whole = {name for name in names.values() if all(row in rows for row, other in names.items() if other == name)}
    return list(dict.fromkeys(names[row] if names[row] in whole else row for row in rows))


def markdown(
    definition: Definition, item: str, cells: list[Cell], sentences: Sequence[str] = (), further: Sequence[str] = ()
) -> str:
    """The table as GitHub Markdown: `sentences`, main grid, further grids, legend, remarks and `further` remarks."""
    parts = [f"### {definition.title}: {definition.heading(item)}"]
    if sentences:
        parts.append(token_text.markdown(" ".join(sentences)))
    for heading, block in blocks(cells):
        if heading:
            parts.append(f"#### {heading}" + (f" ({definition.scale_note()})" if heading != PRINTED else ""))
        parts.append(markdown_grid(under_heading(block)))
    parts.append(" ".join(legend(definition, cells)))
    notes = [*remarks(cells), *further]
    if notes:
        parts.append("\n".join(f"- {token_text.markdown(note)}" for note in notes))
    return "\n\n".join(parts) + "\n"


def under_heading(cells: list[Cell]) -> list[Cell]:
    """The cells of a further grid, without the part of their rows' brackets that its heading repeats."""
    return [
        replace(cell, row=cell.row.replace(f" [{cell.reading}]", "").replace(f", {cell.reading}]", "]"))
        if cell.reading
        else cell
        for cell in cells
    ]


def markdown_grid(cells: list[Cell]) -> str:
    """The cells of one grid as a Markdown table, without heading and legend."""
    grid = layout(cells)
    if not grid.rows:
        return "Not run."
    prose = prose_columns(cells)
    lines = ["| " + " | ".join(["", *([""] if grid.grouped else []), *map(token_text.markdown, grid.heads)]) + " |"]
    sides = ["---" if column in prose else "---:" for column, _ in grid.keys]
    lines.append("| " + " | ".join(["---"] * (2 if grid.grouped else 1) + sides) + " |")
    for row, group, found, span in grid.rows:
        head = [token_text.markdown(row) if span else "", *([token_text.markdown(group)] if grid.grouped else [])]
        lines.append("| " + " | ".join(head + [_markdown_cell(found.get(key)) for key in grid.keys]) + " |")
    return "\n".join(lines)


def _markdown_cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    if cell.block == PRINTED:
        return token_text.markdown(cell.published)
    own = token_text.markdown(shortened(number(cell), MARKDOWN_CHARACTERS))
    own = f"**{own}**" if cell.best else own
    over_seeds = f" ± {spread(cell)}" if spread(cell) else ""
    return own + over_seeds + (f" ({token_text.markdown(cell.published)})" if cell.published else "")


def latex(
    definition: Definition, item: str, cells: list[Cell], sentences: Sequence[str] = (), further: Sequence[str] = ()
) -> str:
    """The main table as a LaTeX float with `sentences`, legend and `further` remarks in its caption.

    Needs the packages booktabs and graphicx.

    If the table's grids are of equal rank, all of them, one below the other.
    """
    grids = list(blocks(cells))
    if grids and not grids[0][0]:
        grids = grids[:1]
    shown = [(heading, layout(under_heading(grid))) for heading, grid in grids]
    # The columns of the widest grid define the order.
    widest = max((grid for _, grid in shown), key=lambda grid: len(grid.keys), default=layout([]))
    cells = [cell for _, grid in grids for cell in grid]
    prose = prose_columns(cells)
    sides = "".join("p{10cm}" if column in prose else "r" for column, _ in widest.keys)
    lines = [
        "% needs \\usepackage{booktabs,graphicx}",
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{token_text.latex(definition.title + ': ' + definition.heading(item))}. "
        f"{token_text.latex(' '.join([*sentences, *legend(definition, cells), *further]))}}}",
        f"\\label{{tab:{definition.paper}-{item}}}".replace("_", "-"),
        # Shrinks a table that is wider than the text.
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%",
        f"\\begin{{tabular}}{{{'ll' if widest.grouped else 'l'}{sides}}}",
        "\\toprule",
        " & ".join(["", *([""] if widest.grouped else []), *map(token_text.latex, widest.heads)]) + " \\\\",
    ]
    for heading, grid in shown:
        lines.append("\\midrule")
        if heading:
            wide = len(widest.keys) + (2 if widest.grouped else 1)
            lines.append(f"\\multicolumn{{{wide}}}{{l}}{{\\emph{{{token_text.latex(heading)}}}}} \\\\")
        for row, group, found, span in grid.rows:
            head = [token_text.latex(row) if span else "", *([token_text.latex(group)] if widest.grouped else [])]
            lines.append(" & ".join(head + [_latex_cell(found.get(key)) for key in widest.keys]) + " \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}}", "\\end{table}", ""])


def _latex_cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    own = INFINITE.get(number(cell)) or token_text.latex(shortened(number(cell), LATEX_CHARACTERS))
    own = f"\\textbf{{{own}}}" if cell.best else own
    over_seeds = f" $\\pm$ {token_text.latex(spread(cell))}" if spread(cell) else ""
    printed = INFINITE.get(cell.published) or token_text.latex(cell.published)
    return own + over_seeds + (f" ({printed})" if cell.published else "")
