"""What the page shows of one table or one figure."""

from dataclasses import dataclass
from pathlib import Path

from raretok.core.files import relative_link
from raretok.reporting.definition import Definition
from raretok.reporting.deviations import Deviation, beside
from raretok.reporting.page.pictures import description, size, smaller
from raretok.reporting.page.provenance import Records, count, missing
from raretok.reporting.results import Results
from raretok.reporting.tables.cells import blocks
from raretok.reporting.tables.table_command import cells_of, sentences_of
from raretok.reporting.tables.table_text import axes, legend, number, prose_columns, remarks, under_heading

READINGS = "readings"


@dataclass(frozen=True)
class Sources:
    """What tables and figures of the page are made from; links are relative to `folder`, the page's own."""

    results: Results
    published: Path
    folder: Path
    command: str
    deviations: list[Deviation]
    records: Records

    def link(self, path: Path) -> str:
        """A file as a link from the page."""
        return relative_link(path, self.folder)


def tables(definition: Definition, sources: Sources, readings: bool) -> list[dict]:
    """The paper's tables, or those that set two readings of it side by side."""
    return [
        table(definition, item, sources)
        for item, entry in definition.tables.items()
        if (entry["kind"] == READINGS) == readings
    ]


def table(definition: Definition, item: str, sources: Sources) -> dict:
    """A table: its grids, what is said of them, its files and what it rests on."""
    cells = cells_of(definition, item, sources.results, sources.published)
    grids = []
    for heading, block in blocks(cells):
        columns, rows, groups = axes(under_heading(block))
        grids.append(
            {"heading": heading, "columns": columns, "rows": rows, "groups": groups, "prose": prose_columns(block)}
        )
    stem = sources.results.folder / "tables" / definition.paper / item
    return _about(definition, item, sources, stem, ("csv", "md", "tex")) | {
        "grids": grids,
        # Further readings of a table are folded; grids that are all equally the table are not.
        "folded": bool(grids) and not grids[0]["heading"],
        "sentences": sentences_of(definition, item, cells),
        "legend": " ".join(legend(definition, cells)),
        "remarks": remarks(cells),
        "number": number,
        "spread": lambda cell: format(cell.spread, cell.format),
    }


def figure(definition: Definition, item: str, sources: Sources) -> dict:
    """A figure: the picture's file, its description, its files and what it rests on."""
    stem = sources.results.folder / "figures" / definition.paper / item
    picture = smaller(stem)
    width, height = size(picture)
    about = _about(definition, item, sources, stem, ("svg", "png", "pdf"))
    return about | {
        "path": picture,
        "width": width,
        "height": height,
        "alt": f"{about['heading']}. {description(Path(f'{stem}.svg'))}",
    }


def _about(definition: Definition, item: str, sources: Sources, stem: Path, forms: tuple[str, ...]) -> dict:
    """What every item has: heading, files, the command that makes it, runs and deviations."""
    runs = sources.records.behind(definition, item)
    done, expected = count(runs)
    return {
        "id": f"{definition.paper}-{item}",
        "paper": definition.paper,
        "heading": definition.heading(item),
        "files": [(form, sources.link(Path(f"{stem}.{form}"))) for form in forms],
        "command": f"{sources.command} {stem}.{forms[0]}",
        "runs": [one for one in runs if one.trained],
        "done": done,
        "expected": expected,
        "missing": missing(runs),
        "deviations": beside(sources.deviations, definition, item),
        "throughout": [
            one
            for one in sources.deviations
            if one.concerns(*{f"{definition.paper}/{run.method.experiment}" for run in runs})
        ],
        "link": lambda run, seed: sources.link(sources.records.path(run.method, seed)),
    }
