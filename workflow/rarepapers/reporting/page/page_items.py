"""Tables and figures for the report pages."""

from dataclasses import dataclass
from pathlib import Path

from rarepapers.core.files import relative_link
from rarepapers.reporting.definition import Definition
from rarepapers.reporting.deviations import Deviation, deviations_of_item
from rarepapers.reporting.figures.shown import NOT_RUN
from rarepapers.reporting.page.pictures import description, size, smallest
from rarepapers.reporting.page.provenance import count, missing, runs_of
from rarepapers.reporting.results import Results
from rarepapers.reporting.table_layout import layout, readable
from rarepapers.reporting.tables.cells import blocks
from rarepapers.reporting.tables.table_command import cells_of, precision_notes, sentences_of
from rarepapers.reporting.tables.table_text import legend, number, prose_columns, remarks, spread, under_heading

READINGS = "readings"
# Font size in pixels that the smallest letters of a figure keep on the narrowest window.
READABLE = 11
PIXELS = 4 / 3  # of a point
# Kinds of tables with model outputs.
EXAMPLES = ("generated", "neighbours")
# Below this BLEU of the references against themselves, the page gives it beside every BLEU.
REFERENCE_BLEU, FULL = "reference_bleu", 99.9
# Pattern of a sacrebleu signature.
SACREBLEU = r"\bsmooth:|\bnc:"


@dataclass(frozen=True)
class Sources:
    """Sources of the tables and figures of a page; links are relative to `folder`, the folder of the pages."""

    results: Results
    published: Path
    folder: Path
    command: str
    deviations: list[Deviation]

    def link(self, path: Path) -> str:
        """A link from a page to a file."""
        return relative_link(path, self.folder)


def tables(definition: Definition, sources: Sources, readings: bool) -> list[dict]:
    """The paper's tables, or with `readings` those that compare two readings."""
    return [
        table(definition, item, sources)
        for item, entry in definition.tables.items()
        if (entry["kind"] == READINGS) == readings
    ]


def table(definition: Definition, item: str, sources: Sources) -> dict:
    """The data of a table's section: grids, sentences, remarks, files and runs."""
    cells = cells_of(definition, item, sources.results, sources.published)
    grids, not_run = [], []
    for heading, block in blocks(cells):
        shown = layout(under_heading(block))
        if shown.rows:
            grids.append({"heading": heading, "layout": shown, "prose": prose_columns(block)})
        else:
            not_run.append(heading)
    about = _about(definition, item, sources, "tables", ("csv", "md", "tex"))
    return about | {
        "grids": grids,
        "not_run": not_run,
        # Alternative readings of a table are folded; grids of equal rank are not.
        "folded": bool(grids) and not grids[0]["heading"],
        "sentences": [*map(readable, sentences_of(definition, item, cells))],
        "legend": " ".join(legend(definition, cells)),
        "remarks": [*map(readable, remarks(cells)), *precision_notes(definition, item, sources.results)],
        "number": number,
        "spread": spread,
        "waits": bool(about["expected"]) and all(cell.value is None for cell in cells),
        "signatures": signatures(definition, item, sources, about["runs"]),
        "examples": definition.tables[item]["kind"] in EXAMPLES,
    }


def signatures(definition: Definition, item: str, sources: Sources, runs: list) -> list[str]:
    """The sacrebleu signatures of a table's scores, one per score."""
    names = metrics_of(definition.tables[item])
    metrics = sources.results.metrics
    trained = {one.method.experiment for one in runs}
    rows = metrics[metrics["metric"].isin(names) & metrics["experiment"].isin(trained)]
    found = rows[rows["signature"].str.contains(SACREBLEU)]
    return sorted({f"{row.metric}: {row.signature}" for row in found.itertuples()})


def metrics_of(entry: dict) -> set[str]:
    """The metrics in the columns of a table."""
    return {column["metric"] for column in entry.get("columns", {}).values()}


def ceilings(definition: Definition, results: Results, experiments: set[str]) -> str:
    """A sentence on the BLEU of the references themselves where it is below `FULL`; empty if it nowhere is."""
    metrics = results.metrics
    rows = metrics[(metrics["metric"] == REFERENCE_BLEU) & metrics["experiment"].isin(experiments)]
    lost = rows[rows["value"].astype(float) < FULL].sort_values(["experiment", "split"])
    texts = {(one.experiment, one.split): float(one.value) for one in lost.itertuples()}
    told = [
        f"{value:.2f} ({experiment}, {definition.title_of(split.removeprefix('domain.'))})"
        for (experiment, split), value in texts.items()
    ]
    return f"Preparation loses characters: the references themselves have a BLEU of {', '.join(told)}." if told else ""


def figure(definition: Definition, item: str, sources: Sources) -> dict:
    """The data of a figure's section: drawing, caption, files and runs."""
    about = _about(definition, item, sources, "figures", ("svg", "png", "pdf"))
    path = sources.results.folder / "figures" / definition.paper / f"{item}.svg"
    width, height = size(path)
    caption = description(path)
    return about | {
        "path": path,
        "width": round(width * PIXELS),
        "height": round(height * PIXELS),
        "readable": round(width * READABLE / smallest(path)),
        "caption": caption,
        "waits": caption.startswith(NOT_RUN),
    }


def _about(definition: Definition, item: str, sources: Sources, folder: str, forms: tuple[str, ...]) -> dict:
    """Data that all items share: title, files, command, runs and deviations."""
    stem = sources.results.folder / folder / definition.paper / item
    runs = runs_of(definition.behind(item), sources.results)
    done, expected = count(runs)
    experiments = {f"{definition.paper}/{run.method.experiment}" for run in runs}
    trained = [one.method.experiment for one in runs if one.trained]
    has_bleu = folder == "figures" or any("bleu" in name for name in metrics_of(definition.tables[item]))
    own = deviations_of_item(sources.deviations, definition, item)
    return {
        "id": f"{definition.paper}-{item}",
        "item": item,
        "heading": definition.caption(item),
        "files": [(form, sources.link(Path(f"{stem}.{form}"))) for form in forms],
        "command": f"{sources.command} {stem}.{forms[0]}",
        "runs": [one for one in runs if one.trained],
        "data": ", ".join(dict.fromkeys(definition.corpus_title(name) for name in trained)),
        "done": done,
        "expected": expected,
        "missing": missing(runs),
        "ceilings": ceilings(definition, sources.results, {run.method.experiment for run in runs}) if has_bleu else "",
        "deviations": own + [one for one in sources.deviations if one.concerns(*experiments) and one not in own],
    }
