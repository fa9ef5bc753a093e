"""Any token, written into each format and read back by a parser of it, is what is shown."""

import csv
import html
import logging
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rarepapers.reporting.csv_rows import read_table, write_table
from rarepapers.reporting.figures.smaller_svg import smaller_svg
from rarepapers.reporting.figures.style import figure_text, house_style, save, sheet, symbol_ticks
from rarepapers.reporting.page.page_command import templates
from rarepapers.reporting.page.pictures import as_data
from rarepapers.reporting.tables.cells import Cell
from rarepapers.reporting.tables.table_text import markdown_grid
from rarepapers.reporting.token_text import (
    END_OF_ISOLATE,
    ISOLATE,
    REPLACEMENT,
    latex,
    markdown,
    one_line,
    visible_text,
)

ROOT = Path(__file__).parents[2]
WITHOUT_ISOLATES = str.maketrans("", "", ISOLATE + END_OF_ISOLATE)

HARD = [
    "&apos;s",
    "&lt;unk&gt;",
    "&copy;",
    "_the_",
    "__init__",
    "~~no~~",
    "a|b",
    "\\|",
    "\\",
    "<unk>",
    "*",
    "**a**",
    "--",
]
HARD += [
    "$x$",
    "\\$",
    "# a",
    "> a",
    "- a",
    "[a](b)",
    "![a](b)",
    "`a`",
    "``",
    "<!-- a -->",
    "a\x0cb",
    "\u202eabc",
    "\u0301",
]
HARD += [
    "\u3164",
    "漢字",
    "עברית",
    "👩‍👩",
    "\ud800",
    "\x00",
    "\r",
    "\r\n",
    "\u2028",
    'style="a"',
    ' x="1.2345"',
    "=1+1",
    "e\u0301",
]
TOKENS = (
    st.sampled_from(HARD) | st.text(st.characters(), min_size=1) | st.text("\\|*<`[]&_~$#>-+='\"!;ab1. ", min_size=1)
)


@given(TOKENS)
def test_what_is_shown_can_be_seen(token):
    for shown in (visible_text(token), one_line(token)):
        assert shown.isprintable()
    assert not re.search(r"\s", visible_text(token))
    assert visible_text(token)


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("a\x0cb", f"a{REPLACEMENT}b"),
        ("\u202eabc", f"{REPLACEMENT}abc"),
        ("\u0301", "◌\u0301"),
        ("e\u0301", "e\u0301"),
        ("\u3164", REPLACEMENT),
        ("▁the", "␣the"),
        ("&apos;s", "&apos;s"),
    ],
)
def test_stand_ins(token, shown):
    assert visible_text(token) == shown


@given(TOKENS)
@example("0.")
@example("123456789) x")
@example("1234567890.")
def test_markdown(token):
    shown = visible_text(token)
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    for best in (False, True):
        cells = [
            Cell(shown, "query", group=shown, value=shown, best=best, named=False),
            Cell("other row", "query", group="another one", value="b", named=False),
        ]
        page = parser.render(markdown_grid(cells))
        found = [html.unescape(re.sub(r"<[^>]+>", "", cell)) for cell in re.findall(r"<td[^>]*>(.*?)</td>", page)]
        assert [cell.translate(WITHOUT_ISOLATES) for cell in found[:3]] == [shown, shown, shown]
    found = parser.render(f"- {markdown(shown)}").translate(WITHOUT_ISOLATES)
    assert html.unescape(re.sub(r"<[^>]+>", "", found)).strip() == shown
    assert page.count("<td") == 6


@pytest.mark.parametrize(
    "token", ["\u05e2\u05d1\u05e8\u05d9\u05ea", "\u0639\u0631\u0628\u064a", "a \u05e2", "\u0661\u0662"]
)
def test_right_to_left_text_is_isolated_from_the_number_beside_it(token):
    cell = Cell("row", "query", value=token, published="12", named=False)
    line = markdown_grid([cell]).splitlines()[-1]
    assert f"{ISOLATE}{token}{END_OF_ISOLATE} " in line
    assert line.count(ISOLATE) == line.count(END_OF_ISOLATE) == 1
    page = templates().from_string("{{ token | token }} ± 0.5").render(token=token)
    assert page == f"<bdi>{token}</bdi> ± 0.5"
    assert templates().from_string("{{ token | token }}").render(token="<b>&amp;") == "&lt;b&gt;&amp;amp;"
    assert latex(token).isascii()
    # Isolating characters of a token itself become visible stand-ins: only ours isolate.
    assert visible_text(ISOLATE + END_OF_ISOLATE) == 2 * REPLACEMENT


def test_the_page_isolates_tokens_in_cells():
    template = (ROOT / "workflow/rarepapers/reporting/templates/page/item.html.j2").read_text(encoding="utf-8")
    assert template.count("table.number(cell) | token") == template.count("table.number(cell)") == 2
    assert "cell.published | token" in template


class Texts(HTMLParser):
    """The text of a page."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)
        self.close()

    def handle_data(self, data):
        self.found.append(data)


@given(TOKENS)
def test_html(token):
    shown = visible_text(token)
    for how in ("token", "token | token"):
        page = templates().from_string(f"<td>{{{{ {how} }}}}</td>").render(token=shown)
        assert "".join(Texts(page).found) == shown


@given(st.lists(TOKENS, min_size=1, max_size=4))
@settings(max_examples=50, deadline=None)
def test_csv_holds_the_token_itself(tmp_path_factory, tokens):
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    tokens = [token for token in tokens if not re.search("[\ud800-\udfff\x00]", token)]
    write_table(path, pd.DataFrame({"token": tokens, "after": ["x"] * len(tokens)}))
    with open(path, newline="", encoding="utf-8") as file:
        assert list(csv.reader(file))[1:] == [[token, "x"] for token in tokens]
    assert read_table(path)["token"].tolist() == tokens


@given(st.lists(TOKENS, min_size=1, max_size=5))
@settings(max_examples=20, deadline=None)
def test_figures(tmp_path_factory, tokens):
    """An svg is well-formed and holds the text, also in a page; png and pdf have a glyph for each character."""
    folder = tmp_path_factory.mktemp("figure")
    with house_style():
        figure = sheet(2.0)
        symbol_ticks(figure.subplots(), tokens)
        save(figure, folder / "figure", "Title", f'A "caption" on {visible_text(tokens[0])}')
    written = folder.joinpath("figure.svg").read_text(encoding="utf-8")
    in_page = unquote(html.unescape(str(as_data(folder / "figure.svg")))).removeprefix("data:image/svg+xml,")
    shown = [figure_text(token).replace(r"\$", "$") for token in tokens]
    for svg in (written, in_page):
        root = ElementTree.fromstring(svg)
        texts = ["".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")]
        assert list(filter(None, texts))[: len(shown)] == shown


def test_the_png_and_pdf_have_every_glyph(tmp_path, caplog, recwarn):
    tokens = [*HARD, *map(chr, range(0x20, 0x3000, 97))]
    with house_style(), caplog.at_level(logging.WARNING):
        figure = sheet(3.0)
        figure.text(0, 0, " ".join(map(figure_text, tokens)))
        for form in ("png", "pdf"):
            figure.savefig(tmp_path / f"figure.{form}")
    assert not [one for one in recwarn if "Glyph" in str(one.message)]
    assert not caplog.records
    assert figure_text("漢") == "U+6F22"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a | b", "a \\textbar{} b"),
        ("yes -- no", "yes -{}- no"),
        ("yes --- no", "yes -{}-{}- no"),
        ("–-", "--{}-"),
        ("``", "`{}`"),
        ("’'", "'{}'"),
        ("?`!`", "?{}`!{}`"),
        ("a < b", "a $<$ b"),
        ("50% -1.5", "50\\% -1.5"),
        ("a\x0c", "aU+000C"),
    ],
)
def test_latex_has_no_ligatures(text, written):
    assert latex(text) == written


@given(TOKENS)
def test_latex_is_read_back(token):
    """A reader of the commands that `latex` writes, and of OT1's ligatures, finds the text."""
    glyphs = {"--": "–", "---": "—", "``": "“", "''": "”", "?`": "¿", "!`": "¡", "{}": "", "{[}": "[", "{]}": "]"}
    glyphs |= {"$<$": "<", "$>$": ">", "\\textvisiblespace{}": "␣", "\\textbar{}": "|", "\\texttt{\\char34}": '"'}
    glyphs |= {"\\textbackslash{}": "\\", "\\textasciitilde{}": "~", "\\textasciicircum{}": "^"}
    glyphs |= {"\\dots{}": "…", "$\\pm$": "±", "$\\dagger$": "†", "$\\ddagger$": "‡", "$\\uparrow$": "↑"}
    glyphs |= {"$\\downarrow$": "↓", "$\\sigma$": "σ"} | {f"\\{one}": one for one in "&%$#_{}"}
    longest_first = sorted(map(re.escape, glyphs), key=len, reverse=True)
    written = latex(visible_text(token))
    found = re.sub("|".join(longest_first) + "|.", lambda match: glyphs.get(match[0], match[0]), written)
    quotes = str.maketrans({"‘": "`", "’": "'"})  # OT1 has one glyph for both
    right = visible_text(token).translate(quotes)
    assert found == "".join(
        c if c in glyphs.values() or (c < "\u0180" and latex(c) == c) else f"U+{ord(c):04X}" for c in right
    )


def test_markdown_keeps_numbers_and_the_dash_of_missing_ones():
    assert [markdown(text) for text in ("-1.50", "+0.3", "–", "1.5 [1, 2]")] == ["-1.50", "+0.3", "–", "1.5 \\[1, 2]"]


def test_quotes_in_a_text_are_no_attributes():
    svg = '<svg xmlns="a"><text style="a: b">x style="a: b" y</text><text style="a: b"/></svg>'
    texts = [one.text for one in ElementTree.fromstring(smaller_svg(svg)).iter() if one.text]
    assert texts == ['x style="a: b" y']
