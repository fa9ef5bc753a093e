"""Segments of test sets in SGML (WMT) and XML (IWSLT), read with the standard library's parser of HTML.

WMT's files are not well-formed XML: they have bare ampersands and no root. The parser of HTML accepts them, ignores
case as SGML does, and knows entities and CDATA sections.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from rarepapers.core.errors import UserError

# An ampersand that begins no entity; HTML also knows some without a semicolon, such as `&copy` in an address.
BARE_AMPERSAND, AMPERSAND = re.compile(r"&(?!#?\w+;)"), "&#38;"
SEGMENT, DOCUMENT = "seg", "doc"


@dataclass(frozen=True)
class Segment:
    """The text of a segment, its line in the file, its id, and that of its document; ids may be missing."""

    line: int
    text: str
    id: str | None = None
    document: str | None = None

    def differs_from(self, other: "Segment") -> bool:
        """Whether an id that both sides of a pair have is another one."""
        ids = ((self.document, other.document), (self.id, other.id))
        return any(None not in pair and pair[0] != pair[1] for pair in ids)

    @property
    def name(self) -> str:
        """Its ids in words."""
        return f"segment {self.id}" + (f" of document {self.document}" if self.document else "")


def read_segments(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[Segment]:
    """The segments of numbered lines in order; their text without inner tags, blanks as in the file.

    Raises UserError for a segment without end.
    """
    parser = _Parser(path)
    for _, line in lines:
        parser.feed(BARE_AMPERSAND.sub(AMPERSAND, line) + "\n")
        yield from parser.take()
    parser.close()
    yield from parser.take()
    parser.refuse_open()


class _Parser(HTMLParser):
    """Collects segments until they are taken."""

    def __init__(self, path: Path):
        super().__init__(convert_charrefs=True)
        self._path = path
        self._document = self._open = None
        self._parts, self._finished = [], []

    def take(self) -> list[Segment]:
        finished, self._finished = self._finished, []
        return finished

    def refuse_open(self) -> None:
        if self._open is not None:
            raise UserError(
                f"{self._path}, line {self._open.line}: {self._open.name} has no end (</{SEGMENT}>); get the file again"
            )

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == DOCUMENT:
            self.refuse_open()
            self._document = dict(attributes).get("docid")
        elif tag == SEGMENT:
            self.refuse_open()
            self._open = Segment(self.getpos()[0], "", dict(attributes).get("id"), self._document)
            self._parts = []

    def handle_endtag(self, tag: str) -> None:
        if tag == DOCUMENT:
            self.refuse_open()
            self._document = None
        elif tag == SEGMENT and self._open is not None:
            begun, self._open = self._open, None
            self._finished.append(Segment(begun.line, "".join(self._parts), begun.id, begun.document))

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._parts.append(data)

    def unknown_decl(self, data: str) -> None:
        # A CDATA section, `<![CDATA[text]]>`, which has no entities.
        self.handle_data(data.removeprefix("CDATA[").replace(AMPERSAND, "&"))
