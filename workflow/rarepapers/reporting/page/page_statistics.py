"""Rows of agreement.csv and paired tests for the report pages."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from rarepapers.core.files import read_json
from rarepapers.experiments.grids import has_candidates
from rarepapers.reporting.definition import Definition
from rarepapers.reporting.page.page_claims import short
from rarepapers.reporting.table_layout import readable

METRICS = {"bleu": "BLEU", "chrf": "chrF"}


def agreement_rows(rows: list[dict[str, str]], paper: str) -> list[tuple[str, ...]]:
    """A paper's rows of agreement.csv as text; missing numbers are empty."""
    return [
        (
            *(readable(row[key]) for key in ("item", "column", "group", "rows", "seeds", "pairs")),
            *(_number(row[key]) for key in ("sign_agreement", "kendall_tau", "spearman", "cv_star")),
            row["note"],
        )
        for row in rows
        if row["paper"] == paper
    ]


def paired_test_rows(definition: Definition, comparisons: Sequence[Path]) -> list[tuple]:
    """Rows of the paired tests of `rarepapers compare`: one per system and metric, for one seed's test split.

    comparisons: files of that command, <experiment>/seed<k>.json, of any papers. The results folder may hold more, of
    earlier settings. The tests resample test sentences of one training each, so they do not cover other seeds. Papers
    whose methods have candidates have no rows, because the first candidate need not be the chosen one.
    """
    rows = []
    for experiment in definition.settings if not has_candidates(vars(definition)) else ():
        title = f"{experiment}: {definition.corpus_title(experiment)}"
        for path in sorted((one for one in comparisons if one.parent.name == experiment), key=_seed):
            found, known = read_json(path)["comparisons"], definition.methods.keys()
            tests = [one for one in found if {one["system"], one["baseline"]} <= known]
            p = {(one["system"], one["metric"], one["test"]): f"{one['p']:.4f}" for one in tests}
            for one in (one for one in tests if one["test"] == "bootstrap"):
                labels = (definition.methods[one[name]].label for name in ("system", "baseline"))
                ours, theirs = one["second"], one["first"]
                numbers = (f"{ours:.2f}", f"{theirs:.2f}", f"{ours - theirs:+.2f}")
                both = (p[one["system"], one["metric"], test] for test in ("bootstrap", "randomisation"))
                rows.append((title, _seed(path), *labels, METRICS[one["metric"]], *numbers, *both))
    return rows


def with_rowspans(rows: Sequence[tuple], leading: int) -> Iterator[tuple[int, tuple]]:
    """Each row with the number of rows that share its first `leading` cells, or 0 if it is not the first of them."""
    for _, group in groupby(rows, key=lambda row: row[:leading]):
        alike = list(group)
        yield from ((0 if number else len(alike), row) for number, row in enumerate(alike))


def _seed(path: Path) -> int:
    return int(path.stem.removeprefix("seed"))


def _number(value: str) -> str:
    return short(value) if value else ""
