"""Deviations from the papers: parser of docs/deviations.md, and lookup by item, claim and paper.

Tables with a column `affects` are read; the other cells of a row are shown unchanged. In the section of a paper
(`## agg`) a row can name an item (`table3`), a claim without its paper (`t3.I_W`), an experiment (`language_model`), or
`all`. Sections on several papers put the paper first: `agg/table3`, `agg.t3.I_W`, `agg/all`. These full names are valid
in any section.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode
from markupsafe import Markup

from rarepapers.core.errors import UserError
from rarepapers.core.files import relative_link
from rarepapers.reporting.claims.quantities import comparisons
from rarepapers.reporting.definition import Definition

COLUMN = "affects"
WHOLE = "all"


@dataclass(frozen=True)
class Deviation:
    """One row: its name (the first cell), its cells by column, and the full names of what it affects.

    words: safe HTML. affects: `agg/table3`, `agg.t3.I_W`, `agg/language_model` or `agg/all`.
    """

    name: str
    section: str
    words: dict[str, Markup]
    affects: tuple[str, ...]

    @property
    def anchor(self) -> str:
        """Its id on the page; rows of different sections may share a name."""
        return f"deviation-{slug(self.section)}-{slug(self.name)}"

    def concerns(self, *names: str) -> bool:
        """Whether the row affects one of these names."""
        return not set(self.affects).isdisjoint(names)


def slug(text: str) -> str:
    """`text` as a valid HTML class or id."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def without_comments(text: str) -> str:
    """Markdown without HTML comments, such as the markers of recorded numbers."""
    return re.sub("<!--.*?-->", "", text, flags=re.DOTALL)


def read_deviations(path: Path, papers: list[str], folder: Path) -> list[Deviation]:
    """The rows of `path` with a column `affects`; relative links are rewritten for a page in `folder`.

    Raises UserError if a row affects nothing.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    found = []
    for section, table in _tables(parser.parse(without_comments(path.read_text(encoding="utf-8")))):
        head, *rows = table
        columns = [cell.content for cell in head]
        if COLUMN not in columns:
            continue
        for row in rows:
            words = dict(zip(columns, row, strict=True))
            named = words.pop(COLUMN).content
            if not named:
                raise UserError(f"{path}: '{row[0].content}' names nothing under `{COLUMN}`; `{WHOLE}` means a paper.")
            name, *_ = words
            shown = {column: inline_html(parser, cell, path, folder) for column, cell in words.items()}
            found.append(
                Deviation(
                    name=_plain(words[name]),
                    section=section,
                    words={column: text for column, text in shown.items() if column != name},
                    affects=tuple(_full(word.strip(), section, papers) for word in named.split(",")),
                )
            )
    return found


def deviations_of_item(deviations: list[Deviation], definition: Definition, item: str) -> list[Deviation]:
    """Deviations that affect a table or figure, including those that a table of readings examines."""
    entry = definition.entry(item)
    about = set(entry.get("about", []))
    own = [one for one in deviations if one.section == definition.paper and not about.isdisjoint(one.name.split(", "))]
    return own + [one for one in deviations if one.concerns(f"{definition.paper}/{item}") and one not in own]


def of_claim(deviations: list[Deviation], claim: dict) -> list[Deviation]:
    """Deviations that affect a claim, or an item that it is about."""
    items = (f"{claim['paper']}/{item}" for item in items_of(claim))
    return [one for one in deviations if one.concerns(claim["id"], *items)]


def of_paper(deviations: list[Deviation], paper: str) -> list[Deviation]:
    """Deviations that affect anything of a paper."""
    return [one for one in deviations if any(re.split(r"[/.]", name)[0] == paper for name in one.affects)]


def items_of(claim: dict) -> list[str]:
    """The tables that a claim compares, or the items in its id: `f5_7.bias` is about figures 5 to 7."""
    about_table = claim["measured_by"] == "table"
    named = [key.table for one in comparisons(claim["quantity"]) for key in one.keys] if about_table else []
    match = re.search(r"\.([tf])(\d+)(?:_(\d+))?", claim["id"])
    if not named and match:
        kind = {"t": "table", "f": "figure"}[match[1]]
        named = [f"{kind}{number}" for number in range(int(match[2]), int(match[3] or match[2]) + 1)]
    return list(dict.fromkeys(named))


def _full(name: str, section: str, papers: list[str]) -> str:
    """A name with its paper, which sections on one paper omit."""
    if section not in papers or re.split(r"[/.]", name)[0] in papers:
        return name
    return f"{section}.{name}" if "." in name else f"{section}/{name}"


def _tables(tokens: list[Token]) -> Iterator[tuple[str, list[list[Token]]]]:
    """(section title, rows of inline tokens, head first) of every table."""
    section = ""
    for node in SyntaxTreeNode(tokens).children:
        if node.type == "heading" and node.tag == "h2":
            section = node.children[0].content
        elif node.type == "table":
            rows = (row for part in node.children for row in part.children)
            yield section, [[cell.children[0].token for cell in row.children] for row in rows]


def inline_html(parser: MarkdownIt, text: Token, source: Path, folder: Path) -> Markup:
    """A line of the Markdown file `source` as HTML for a page in `folder`."""
    for part in text.children:
        link = part.attrGet("href") if part.type == "link_open" else None
        if link and "://" not in link:
            path, mark, place = str(link).partition("#")
            target = source.parent / path if path else source
            part.attrSet("href", relative_link(target, folder) + mark + place)
    return Markup(parser.renderer.renderInline(text.children, parser.options, {}))


def _plain(cell: Token) -> str:
    return "".join(part.content for part in cell.children if part.type in ("text", "code_inline"))
