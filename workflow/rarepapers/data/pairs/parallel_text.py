"""Reader of parallel text in the formats of data sets; errors name file and line.

The file name decides the format: lines of plain text; the same, compressed (`.gz`); `.sgm` of WMT and `.xml` of IWSLT,
whose `<seg>` elements are read in place of lines (`markup`); `train.tags.*` of IWSLT, without the lines that describe a
talk except title and description, as in fairseq's prepare-iwslt14.sh; `.csv` and `.tsv`, two columns of a table. In
formats with markup, entities such as `&amp;` become characters. In `.xml` ’ becomes ', as in prepare-iwslt14.sh, since
IWSLT's training text has only the latter.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from xml.sax.saxutils import unescape

from rarepapers.core.errors import UserError
from rarepapers.data.catalogue import PairFiles
from rarepapers.data.lines import numbered_lines, without_marks
from rarepapers.data.pairs.markup import Segment, read_segments

MARKUP = (".sgm", ".sgml", ".xml")
# Tags of the lines in which IWSLT describes a talk.
DESCRIBING = ("url", "talkid", "keywords", "speaker", "reviewer", "translator", "doc", "/doc")
TITLES = re.compile(r"</?(title|description)>")
QUOTES = {"&quot;": '"', "&apos;": "'"}


def read_pairs(files: PairFiles, empty: str, dropped: Counter) -> Iterator[tuple[str, str]]:
    """Pairs of lines or segments, with surrounding blanks removed and inner ones collapsed.

    Byte order marks of joined files are still there; `encode_pairs` says why.

    empty: whether a pair with an empty side is an `error` or to `drop` and count in dropped["empty"].

    Raises UserError if a file is missing, damaged, empty or not UTF-8, if the files have different numbers of lines or
    segments of different ids, if a table lacks a column, and for an empty side if that is an error.
    """
    number = 0
    for source, target in _segments(files):
        number += 1
        pair = tuple(" ".join(segment.text.split()) for segment in (source, target))
        if all(pair):
            yield pair
            continue
        if empty == "error":
            path, line = (files.target, target.line) if pair[0] else (files.source, source.line)
            raise UserError(
                f"{path}, line {line} is empty; correct the text, or set preparation.empty to drop "
                "in config/corpora.yaml"
            )
        dropped["empty"] += 1
    if not number:
        raise UserError(f"{files.source} has no lines of text; get it again")


def plain_line(line: str) -> str:
    """The line without byte order marks and superfluous blanks."""
    return " ".join(without_marks(line).split())


def find_pair(parts: list[PairFiles], pair: tuple[str, str]) -> tuple[tuple[Path, int], tuple[Path, int]]:
    """File and line of both sides of the first pair with these plain lines; for errors, since it reads the files."""
    for files in parts:
        for sides in _segments(files):
            if tuple(plain_line(side.text) for side in sides) == pair:
                return (files.source, sides[0].line), (files.target, sides[1].line)
    raise ValueError(f"no file has the pair {pair}")


def _segments(files: PairFiles) -> Iterator[tuple[Segment, Segment]]:
    return _read_table(files) if files.columns else _read_sides(files)


def _read_sides(files: PairFiles) -> Iterator[tuple[Segment, Segment]]:
    sides = [_read_lines(path) for path in (files.source, files.target)]
    for pairs, (source, target) in enumerate(zip_longest(*sides)):
        if source is None or target is None:
            longer = pairs + 1 + sum(1 for _ in sides[source is None])
            counts = (pairs, longer) if source is None else (longer, pairs)
            raise UserError(
                f"{files.source} has {counts[0]:,} lines, but {files.target} has {counts[1]:,}; "
                "both sides of a parallel text need as many, get them again"
            )
        if source.differs_from(target):
            raise UserError(
                f"{files.source}, line {source.line} is {source.name}, but its partner, {files.target}, line "
                f"{target.line}, is {target.name}; both sides need the same segments in the same order, get them again"
            )
        yield source, target


def _read_lines(path: Path) -> Iterator[Segment]:
    """Lines or segments of one side with their line in the file."""
    name = path.name.removesuffix(".gz")
    if name.endswith(MARKUP):
        for segment in read_segments(path, numbered_lines(path)):
            text = segment.text.replace("’", "'") if name.endswith(".xml") else segment.text
            # An entity can stand for a mark.
            yield replace(segment, text=without_marks(text))
        return
    for number, line in numbered_lines(path, joined_marks=True):
        if not name.startswith("train.tags."):
            yield Segment(number, line)
        elif not line.lstrip().startswith(tuple(f"<{tag}" for tag in DESCRIBING)):
            yield Segment(number, unescape(TITLES.sub("", line), QUOTES))


def _read_table(files: PairFiles) -> Iterator[tuple[Segment, Segment]]:
    """The two columns of a table: named columns need a header, numbered ones have none."""
    path = files.source
    tabs = path.name.removesuffix(".gz").endswith(".tsv")
    # Tab-separated text has no quoting: a single quotation mark is text.
    options = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if tabs else {"strict": True}
    rows = csv.reader((line + "\n" for _, line in numbered_lines(path, joined_marks=True)), **options)
    places = [column - 1 for column in files.columns if isinstance(column, int)]
    try:
        if not places:
            header = next(rows, [])
            for column in files.columns:
                if column not in header:
                    raise UserError(f"{path} has no column {column}; it has {', '.join(header)}: correct `columns`")
            places = [header.index(column) for column in files.columns]
        for row in filter(None, rows):
            if len(row) <= max(places):
                raise UserError(f"{path}, line {rows.line_num} has {len(row)} columns; correct the table or `columns`")
            yield tuple(Segment(rows.line_num, row[place]) for place in places)
    except csv.Error as error:
        raise UserError(f"{path}, line {rows.line_num} is no row of a table ({error}); get the file again") from error
