"""Reader of parallel text in the formats of data sets; errors name file and line.

The file name decides the format: lines of plain text; the same, compressed (`.gz`); `.sgm` of WMT and `.xml` of IWSLT,
whose `<seg>` elements are the lines; `train.tags.*` of IWSLT, without the lines that describe a talk except title and
description, as in fairseq's prepare-iwslt14.sh; `.csv` and `.tsv`, two columns of a table. In formats with markup,
entities such as `&amp;` become characters. In `.xml` ’ becomes ', as in prepare-iwslt14.sh, since IWSLT's training text
has only the latter.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from xml.sax.saxutils import unescape

from raretok.core.errors import UserError
from raretok.data.catalogue import PairFiles
from raretok.data.lines import numbered_lines

SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>", re.IGNORECASE)
# Tags of the lines in which IWSLT describes a talk.
DESCRIBING = ("url", "talkid", "keywords", "speaker", "reviewer", "translator", "doc", "/doc")
TITLES = re.compile(r"</?(title|description)>")
QUOTES = {"&quot;": '"', "&apos;": "'"}


def read_pairs(files: PairFiles, empty: str, dropped: Counter) -> Iterator[tuple[str, str]]:
    """Pairs of lines, with surrounding blanks removed and inner ones collapsed.

    empty: whether a pair with an empty side is an `error` or to `drop` and count in dropped["empty"].

    Raises UserError if a file is missing, damaged, empty or not UTF-8, if the files have different numbers of lines, if
    a table lacks a column, and for an empty side if that is an error.
    """
    number = 0
    for source_line, source, target_line, target in _read_table(files) if files.columns else _read_sides(files):
        number += 1
        source, target = " ".join(source.split()), " ".join(target.split())
        if source and target:
            yield source, target
            continue
        if empty == "error":
            path, line = (files.target, target_line) if source else (files.source, source_line)
            raise UserError(
                f"{path}, line {line} is empty; correct the text, or set preparation.empty to drop "
                "in config/corpora.yaml"
            )
        dropped["empty"] += 1
    if not number:
        raise UserError(f"{files.source} has no lines of text; get it again")


def _read_sides(files: PairFiles) -> Iterator[tuple[int, str, int, str]]:
    sides = [_read_lines(path) for path in (files.source, files.target)]
    for pairs, (source, target) in enumerate(zip_longest(*sides)):
        if source is None or target is None:
            longer = pairs + 1 + sum(1 for _ in sides[source is None])
            counts = (pairs, longer) if source is None else (longer, pairs)
            raise UserError(
                f"{files.source} has {counts[0]:,} lines, but {files.target} has {counts[1]:,}; "
                "both sides of a parallel text need as many, get them again"
            )
        yield *source, *target


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of one side with their numbers in the file."""
    name = path.name.removesuffix(".gz")
    for number, line in numbered_lines(path):
        if name.endswith((".sgm", ".xml")):
            found = SEGMENT.search(line)
            if found:
                text = unescape(found.group(1), QUOTES)
                yield number, text.replace("’", "'") if name.endswith(".xml") else text
        elif name.startswith("train.tags."):
            if not line.lstrip().startswith(tuple(f"<{tag}" for tag in DESCRIBING)):
                yield number, unescape(TITLES.sub("", line), QUOTES)
        else:
            yield number, line


def _read_table(files: PairFiles) -> Iterator[tuple[int, str, int, str]]:
    """The two columns of a table: named columns need a header, numbered ones have none."""
    path = files.source
    tabs = path.name.removesuffix(".gz").endswith(".tsv")
    # Tab-separated text has no quoting: a single quotation mark is text.
    options = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if tabs else {"strict": True}
    rows = csv.reader((line + "\n" for _, line in numbered_lines(path)), **options)
    places = [column - 1 for column in files.columns if isinstance(column, int)]
    try:
        if not places:
            header = [name.removeprefix("\ufeff") for name in next(rows, [])]
            for column in files.columns:
                if column not in header:
                    raise UserError(f"{path} has no column {column}; it has {', '.join(header)}: correct `columns`")
            places = [header.index(column) for column in files.columns]
        for row in filter(None, rows):
            if len(row) <= max(places):
                raise UserError(f"{path}, line {rows.line_num} has {len(row)} columns; correct the table or `columns`")
            yield rows.line_num, row[places[0]], rows.line_num, row[places[1]]
    except csv.Error as error:
        raise UserError(f"{path}, line {rows.line_num} is no row of a table ({error}); get the file again") from error
