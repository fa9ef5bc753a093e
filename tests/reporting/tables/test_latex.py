"""LaTeX tables compile: the recorded ones, and any text that a run can write into one."""

import json
import shutil
import subprocess

import pytest
from fake_page import HOSTILE
from fake_results import ROOT, definition_of

from rarepapers.reporting.definition import parse_definition
from rarepapers.reporting.tables.cells import Cell
from rarepapers.reporting.tables.table_text import latex

pytestmark = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex is on PATH")

RECORDED = sorted((ROOT / "results" / "recorded").glob("*/tables/*/*.tex"))
TEXTS = [
    HOSTILE,
    "\\input{/etc/passwd} \\end{document} % $x$ #1 _a^b {c} ~ & [d] ] [",
    "".join(chr(code) for code in range(0x20, 0x250) if chr(code).isprintable()),
    "漢字 кириллица ␣ † ‡ … — ‘ ’ “ ” – \u202e \x07 \x00 \n\n \\\\[1cm] \U0001f642 ﬁ \u00ad \ufeff",
    "x" * 3000,
]


def compile_all(folder, bodies):
    """The number of pages of a document with these tables; pdflatex's messages on failure."""
    lines = ["\\documentclass{article}", "\\usepackage{booktabs,graphicx}", "\\begin{document}"]
    for body in bodies:
        lines += [body, "\\clearpage"]
    (folder / "all.tex").write_text("\n".join([*lines, "\\end{document}", ""]), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "all.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-3000:]
    assert "Missing character" not in (folder / "all.log").read_text(encoding="utf-8", errors="replace")
    return done.stdout.partition("Output written on all.pdf (")[2].partition(" page")[0]


def test_recorded_tables_compile(tmp_path):
    assert len(RECORDED) > 30
    pages = compile_all(tmp_path, [path.read_text(encoding="utf-8") for path in RECORDED])
    assert int(pages) >= len(RECORDED)


def test_any_text_compiles(tmp_path):
    raw = definition_of("small")
    raw["tables"] = {"table1": {"title": TEXTS[1], "kind": "metrics"}}
    definition = parse_definition(json.dumps(raw))
    # Names and printed numbers come from the config and are short.
    cells = [
        Cell(row=text[:90], column=text[:90], group=text[:30], published=text[:90], value=text, best=True)
        for text in TEXTS
    ]
    body = latex(definition, "table1", cells, TEXTS[:2])
    assert int(compile_all(tmp_path, [body])) == 1
