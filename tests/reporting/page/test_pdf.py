"""The report on paper: all that the page has, hostile text included, and the same bytes again."""

import pytest
import typst
from fake_page import HOSTILE

from raretok.__main__ import main
from raretok.reporting.page import pdf_command

CODE = "#panic() $x_1^2$ *b* _i_ `c` [d] @e <f> // g \\ #{sys.inputs} \u202e \x07 漢字 ␣ 🙂"


@pytest.fixture(scope="module")
def report(page):
    """The PDF of the made-up results, and what it was made of."""
    words = []

    def kept(report, form="pdf"):
        words.append(report)
        return compiled(report, form)

    compiled, pdf_command.compiled = pdf_command.compiled, kept
    try:
        output = page.folder / "report" / "report.pdf"
        assert main(["pdf", *page.common, "--command=snakemake --cores all", f"--output={output}"]) == 0
    finally:
        pdf_command.compiled = compiled
    return output.read_bytes(), words[0]


def test_everything_is_in_it(report):
    content, words = report
    assert content.startswith(b"%PDF-")
    papers = {paper["title"]: paper for paper in words["papers"]}
    assert len(papers) == 2
    stop, agg = papers.values()
    assert len(stop["claims"]) == 44
    assert len(stop["figures"]) == 2
    assert len(stop["tables"][0]["tables"]) == 5
    assert "seed 2" in agg["missing"]
    assert agg["runs"].partition(" of ")[0] != agg["runs"].partition(" of ")[2]
    (tables,) = [part["tables"] for part in agg["tables"] if part["title"] == "Tables"]
    assert HOSTILE[:40] in str(tables)
    row = tables[0]["grids"][0]["rows"][0]
    assert row["cells"][0]["published"] == "13.30"
    assert tables[0]["command"].endswith("tables/agg/table3.csv")


def test_the_same_bytes_again(report):
    content, words = report
    assert pdf_command.compiled(words) == content


def test_words_are_never_read_as_markup():
    cell = {"own": CODE, "spread": "", "published": CODE, "best": True, "prose": False}
    grid = {"heading": CODE, "columns": [CODE], "groups": True, "prose": [False]}
    grid["rows"] = [{"head": [CODE, CODE], "cells": [cell]}, {"head": [CODE, ""], "cells": [None]}]
    table = {"heading": CODE, "missing": CODE, "command": CODE, "said": CODE, "notes": [CODE], "grids": [grid]}
    claim = dict.fromkeys(("id", "verdict", "note", "seeds", "sentence", "printed", "ours"), CODE)
    paper = {
        **dict.fromkeys(("title", "scale", "runs", "missing"), CODE),
        "counts": [CODE],
        "claims": [claim],
        "tables": [{"title": CODE, "tables": [table]}],
        "figures": [],
    }
    words = {"title": CODE, "scale": CODE, "verdicts": [CODE], "claims-legend": CODE, "apart": CODE, "papers": [paper]}
    assert pdf_command.compiled(words).startswith(b"%PDF-")
    with pytest.raises(typst.TypstError, match="panicked"):
        typst.compile(b"#panic()")
