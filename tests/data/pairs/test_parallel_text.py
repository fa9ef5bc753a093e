"""Parallel texts in every format, and errors that name file and line."""

import gzip
import os
from collections import Counter
from pathlib import Path

import pytest

from rarepapers.core.errors import UserError
from rarepapers.data.catalogue import PairFiles
from rarepapers.data.pairs.parallel_text import read_pairs


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def pairs(source, target, empty="error", dropped=None, columns=None):
    return list(read_pairs(PairFiles(source, target, columns), empty, Counter() if dropped is None else dropped))


def test_plain_and_compressed_text_is_read_line_by_line(write):
    # Only a line feed ends a line: other separators are blanks.
    source = write("a.de", " Ein\u2028Hund \r\nzwei  Katzen")
    target = write("a.en.gz", gzip.compress(b"A dog\ntwo cats\n"))
    assert pairs(source, target) == [("Ein Hund", "A dog"), ("zwei Katzen", "two cats")]


@pytest.mark.parametrize("separator", ["\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_other_line_separators_do_not_shift_lines(write, separator):
    source, target = write("a.de", f"Ein{separator}Hund\nzwei\n"), write("a.en", "A dog\ntwo\n")
    assert pairs(source, target) == [("Ein Hund", "A dog"), ("zwei", "two")]


def test_sgm_and_xml_are_read_by_segment(write):
    source = write("a.sgm", '<srcset>\n<doc>\n<hl>\n<seg id="1">Eins</seg>\n</hl>\n<seg id="2"> Zwei </seg>\n</doc>')
    target = write("a.en.xml", '<seg id="1"> One </seg>\n<seg id="2">Two</seg>\n<url>x</url>\n')
    assert pairs(source, target) == [("Eins", "One"), ("Zwei", "Two")]


def test_segments_may_span_lines_and_share_one(write):
    german = ["Eins und mehr.", "Zwei.", "Drei."]
    english = ["One and more.", "Two lines.", "Three."]
    expected = list(zip(german, english, strict=True))
    source = '<doc>\n<seg id="1">Eins\nund  mehr.</seg>\n<SEG ID="2">Zwei.</SEG> <seg id="3">\nDrei.</seg>'
    target = '<doc><p><seg id="1">One and more.</seg></p><seg id="2">Two\n lines.</seg><seg id="3">Three.</seg></doc>'
    assert pairs(write("a.sgm", source), write("b.sgm", target)) == expected
    whole = "".join(f"<seg id='{number}'>{text}</seg>" for number, text in enumerate(german, 1))
    assert pairs(write("c.xml", f"<?xml version='1.0'?><mteval>{whole}</mteval>"), write("b.xml", target)) == expected


def test_markup_is_parsed(write):
    # A comment, CDATA, a tag inside a segment, a bare ampersand, one that HTML would read as a sign, and a bare <.
    source = write("a.sgm", '<!-- <seg id="0">no</seg> --><seg id="1"><![CDATA[a & b]]></seg>\n<seg id="2">1 < 2</seg>')
    target = write("b.sgm", '<seg id="1">a <i>bold</i> x</seg><seg id="2">R&D at x?a&copy=1 &#252;</seg>')
    assert pairs(source, target) == [("a & b", "a bold x"), ("1 < 2", "R&D at x?a&copy=1 ü")]
    # An empty segment keeps its place.
    dropped = Counter()
    source = write("a.sgm", '<seg id="1"/><seg id="2">Zwei</seg>')
    assert pairs(source, target, "drop", dropped) == [("Zwei", "R&D at x?a&copy=1 ü")]
    assert dropped == {"empty": 1}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            '<doc docid="x"><seg id="1">a</seg>\n<seg id="3">b</seg></doc>',
            "a.sgm, line 2 is segment 3 of document x, but its partner, .*b.sgm, line 3, is segment 2 of document x",
        ),
        (
            '<doc docid="y"><seg id="1">a</seg><seg id="2">b</seg></doc>',
            "a.sgm, line 1 is segment 1 of document y, but its partner, .* is segment 1 of document x",
        ),
        ('<doc docid="x"><seg id="1">a</seg></doc>', "a.sgm has 1 lines, but .*b.sgm has 2"),
        ('<doc docid="x"><seg id="1">a\n<seg id="2">b</seg></doc>', "line 1: segment 1 of document x has no end"),
        ('<doc docid="x"><seg id="1">a</seg>\n<seg id="2">b</doc>', "line 2: segment 2 of document x has no end"),
        ('<seg id="1">a</seg>\n<seg id="2">b', "a.sgm, line 2: segment 2 has no end"),
        ("no markup\n", "a.sgm has 0 lines"),
    ],
)
def test_segments_that_do_not_match_are_refused(write, source, message):
    target = write("b.sgm", '\n<doc docid="x"><seg id="1">x</seg>\n<seg id="2">y</seg></doc>\n')
    with pytest.raises(UserError, match=message):
        pairs(write("a.sgm", source), target)


def test_the_real_test_set_in_sgml_is_the_plain_one():
    if "RARETOK_MIRROR" not in os.environ:
        pytest.skip("RARETOK_MIRROR names no data mirror")
    folder = Path(os.environ["RARETOK_MIRROR"]) / "wmt14" / "test-full"
    for one, other in (("src.de", "ref.en"), ("src.en", "ref.de")):
        marked = pairs(*(folder / f"newstest2014-deen-{side}.sgm" for side in (one, other)))
        plain = pairs(*(folder / f"newstest2014.full.{side[-2:]}" for side in (one, other)))
        assert marked == plain
        assert len(plain) == 3003


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.de", "\ufeffEins\n"),
        ("train.tags.de-en.de", "\ufeff<url>u</url>\n<title>Eins</title>\n"),
        ("a.sgm", '\ufeff<seg id="1">Eins</seg>\n'),
        ("a.xml", '<seg id="1">&#xFEFF;Eins</seg>\n'),
    ],
)
def test_a_byte_order_mark_is_no_text(write, name, content):
    assert pairs(write(name, content), write("a.en.gz", gzip.compress("\ufeffOne\n".encode()))) == [("Eins", "One")]


def test_title_and_description_of_talks_are_kept(write):
    source = write("train.tags.de-en.de", "<url>u</url>\n<keywords>k</keywords>\n<title>Titel</title>\nEin Satz\n")
    target = write("train.tags.de-en.en", "<url>u</url>\n<talkid>1</talkid>\n<title>Title</title>\nA sentence\n")
    assert pairs(source, target) == [("Titel", "Title"), ("Ein Satz", "A sentence")]


def test_entities_become_plain_text(write):
    # Text escaped twice is unescaped once: it is about escaping.
    escaped, plain = "R&amp;D: &quot;it’s&quot; &lt;em&gt; A & B &amp;lt;", 'R&D: "it’s" <em> A & B &lt;'
    segments = f'<seg id="1">{escaped}</seg>\n'
    # IWSLT's training text has no other apostrophe than the plain one.
    sides = pairs(write("a.sgm", segments), write("a.xml.gz", gzip.compress(segments.encode())))
    assert sides == [(plain, plain.replace("’", "'"))]
    assert pairs(write("train.tags.de-en.de", f"{escaped}\n"), write("a.en", f"{escaped}\n")) == [(plain, escaped)]


def test_columns_of_tables_are_found_by_name_or_number(write):
    table = write("a.csv", '\ufeffID,De,En\n1,"Ein ""Hund"", ja","A dog\ntoo"\n\n2,Katze,Cat\n')
    assert pairs(table, table, columns=("De", "En")) == [('Ein "Hund", ja', "A dog too"), ("Katze", "Cat")]
    tabs = write("a.tsv", '1\tA "dog\tEin "Hund\n2\tCat\tKatze\n')
    assert pairs(tabs, tabs, columns=(3, 2)) == [('Ein "Hund', 'A "dog'), ("Katze", "Cat")]
    with pytest.raises(UserError, match=r"a.csv has no column Fr; it has ID, De, En"):
        pairs(table, table, columns=("De", "Fr"))
    with pytest.raises(UserError, match=r"a.tsv, line 1 has 3 columns"):
        pairs(tabs, tabs, columns=(1, 4))


@pytest.mark.parametrize("table", ["De\rEn\na,b\n", 'De,En\na,"b\nc,d\n', 'De,En\na,"b"c\n'])
def test_invalid_tables_are_refused(write, table):
    path = write("a.csv", table)
    with pytest.raises(UserError, match=r"a.csv, line \d is no row of a table"):
        pairs(path, path, columns=("De", "En"))


@pytest.mark.parametrize(("one", "other", "counts"), [("a\nb\nc\n", "x\n", (3, 1)), ("a\n", "x\ny\nz\nw\n", (1, 4))])
def test_unequal_numbers_of_lines_are_refused(write, one, other, counts):
    with pytest.raises(UserError, match=rf"a.de has {counts[0]} lines, but .*a.en has {counts[1]}"):
        pairs(write("a.de", one), write("a.en", other))


def test_empty_sides_are_an_error_or_dropped(write):
    source, target = write("a.de", "a\n \nb\nc\n"), write("a.en", "x\ny\nz\n\u00a0\n")
    with pytest.raises(UserError, match=r"a.de, line 2 is empty"):
        pairs(source, target)
    with pytest.raises(UserError, match=r"a.en, line 4 is empty"):
        pairs(write("b.de", "a\nb\nb\nc\n"), target)
    dropped = Counter()
    assert pairs(source, target, "drop", dropped) == [("a", "x"), ("b", "z")]
    assert dropped == {"empty": 2}


def test_errors_name_the_line_of_the_file(write):
    source = write("train.tags.de-en.de", "<url>u</url>\nEins\n\n")
    target = write("train.tags.de-en.en", "<url>u</url>\nOne\nTwo\n")
    with pytest.raises(UserError, match=r"train.tags.de-en.de, line 3 is empty"):
        pairs(source, target)


def test_invalid_text_is_refused(write, tmp_path):
    good = write("a.en", "x\ny\n")
    with pytest.raises(UserError, match=r"a.de is not UTF-8: .* in line 2"):
        pairs(write("a.de", b"a\nb\xff\n"), good)
    with pytest.raises(UserError, match=r"none.de does not exist"):
        pairs(tmp_path / "none.de", good)
    with pytest.raises(UserError, match=r"a.de is empty"):
        pairs(write("a.de", ""), write("b.en", ""))
    with pytest.raises(UserError, match=r"a.de.gz is damaged or cut short"):
        pairs(write("a.de.gz", gzip.compress(b"a\nb\n" * 999)[:-20]), good)
