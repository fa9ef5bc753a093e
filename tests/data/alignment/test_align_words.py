"""The command `align`: links, choice of tool, errors."""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import pytest

from rarepapers.core.errors import UserError
from rarepapers.data.alignment import align_command, fast_align
from rarepapers.data.alignment.links import link_arrays, read_links

# Writes what fast_align would for a text whose words are in order, and logs how it was called and for what.
FAST_ALIGN = """#!/bin/sh
cp "$2" "$CALLS.text"
echo "fast_align $* threads=$OMP_NUM_THREADS" >> "$CALLS"
while IFS= read -r line; do echo "0-0 1-1"; done < "$2"
"""
# Puts together nothing: gives its first file back.
ATOOLS = """#!/bin/sh
echo "atools $*" >> "$CALLS"
cat "$2"
"""


def parse(*arguments):
    parser = argparse.ArgumentParser()
    align_command.add_arguments(parser)
    return parser.parse_args([str(argument) for argument in arguments])


@pytest.fixture
def no_programs(monkeypatch):
    """A machine without the original programs."""
    monkeypatch.setattr(fast_align, "find_programs", dict)


@pytest.fixture
def dictionary(tmp_path):
    """Sentences of which every word has one translation, the last of which comes first; and the gold links."""
    rng = np.random.default_rng(0)
    source, target, gold = [], [], []
    for _ in range(400):
        words = rng.choice(40, size=rng.integers(2, 7), replace=False)
        source.append(" ".join(f"s{word}" for word in words))
        target.append(" ".join(f"t{word}" for word in np.roll(words, 1)))
        gold.append({(i, (i + 1) % len(words)) for i in range(len(words))})
    (tmp_path / "source").write_text("\n".join(source) + "\n")
    (tmp_path / "target").write_text("\n".join(target) + "\n")
    return tmp_path, gold


def align(folder, tool="auto", *more):
    output = folder / "out" / "links"
    options = ["--source", folder / "source", "--target", folder / "target", "--output", output, "--tool", tool]
    align_command.main(parse(*options, *more))
    return output


def test_numpy_finds_the_translations(dictionary, no_programs):
    folder, gold = dictionary
    output = align(folder)
    found = [set(links) for links in read_links(output)]
    assert len(found) == len(gold)
    right = sum(len(a & b) for a, b in zip(found, gold, strict=True))
    # The model favours the diagonal, and every word here is off it.
    assert right / sum(map(len, gold)) > 0.95
    assert right / sum(map(len, found)) > 0.95
    record = json.loads((folder / "out" / "links.json").read_text())
    assert record["tool"] == "numpy"
    assert record["pairs"] == 400
    assert record["links"] == sum(map(len, found))
    assert record["symmetrisation"] == "grow-diag-final-and"
    assert record["options"]["favor_diagonal"]
    assert list(folder.glob("out/.align*")) == []


def test_a_byte_order_mark_is_no_token(dictionary, no_programs):
    folder, _ = dictionary
    links = align(folder).read_bytes()
    for side in ("source", "target"):
        (folder / side).write_bytes(b"\xef\xbb\xbf" + (folder / side).read_bytes())
    assert align(folder).read_bytes() == links


def test_links_are_the_same_bytes_every_time(dictionary, no_programs, monkeypatch):
    folder, _ = dictionary
    first = align(folder).read_bytes()
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert align(folder, "numpy").read_bytes() == first


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Stand-ins for the original programs on PATH; the file in which they write how they were called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("fast_align", FAST_ALIGN), ("atools", ATOOLS)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder) + os.pathsep + os.environ["PATH"])
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    return tmp_path / "calls"


def test_the_programs_are_taken_where_they_are(programs, tmp_path):
    (tmp_path / "source").write_text("a |||\nc d\n")
    (tmp_path / "target").write_text("x y\nz w\n")
    output = align(tmp_path, "auto", "--symmetrisation", "intersect", "--record", tmp_path / "record.json")
    assert output.read_text() == "0-0 1-1\n0-0 1-1\n"
    # A token that reads like the separator keeps its place.
    assert programs.with_name("calls.text").read_text() == "a ¦¦¦ ||| x y\nc d ||| z w\n"
    forward, reverse, together = programs.read_text().splitlines()
    assert forward.endswith("-d -o -v threads=1")
    assert reverse.endswith("-d -o -v -r threads=1")
    options = together.split()[1:]
    assert options[::2] == ["-i", "-j", "-c"]
    assert [Path(value).name for value in options[1::2]] == ["forward", "reverse", "intersect"]
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["tool"] == "fast_align"
    assert set(record["version"]) == {"fast_align", "atools"}
    assert record["links"] == 4


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'no such heuristic' >&2; exit 3", "failed with status 3: no such heuristic"),
        ("head -n 1 $2", r"links of 1 pairs, but .* has 2"),
    ],
)
def test_a_program_that_fails_says_why(programs, tmp_path, script, message):
    (programs.parent / "bin" / "atools").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "source").write_text("a b\nc d\n")
    (tmp_path / "target").write_text("x y\nz w\n")
    with pytest.raises(UserError, match=message):
        align(tmp_path)
    assert not (tmp_path / "out" / "links").exists()


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (b"a b\n", b"x\ny\n", "source has 1 lines, fewer than"),
        (b"a\nb\nc\n", b"x\ny\n", "target has 2 lines, fewer than"),
        (b"a\n\n", b"x\ny\n", "source, line 2, begins with no token; take the pair out of both texts"),
        (b"a\nb\n", b"x\n\xff\n", "target is not UTF-8: .* in line 2"),
        (b"", b"", "source is empty; get it again"),
        (None, b"x\n", "source does not exist"),
    ],
)
def test_wrong_texts_are_one_sentence(tmp_path, no_programs, source, target, message):
    for name, content in (("source", source), ("target", target)):
        if content is not None:
            (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        align(tmp_path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out" / "links").exists()


def test_programs_that_are_not_there_are_one_sentence(dictionary, no_programs):
    folder, _ = dictionary
    with pytest.raises(UserError, match="fast_align and atools not found on PATH"):
        align(folder, "fast_align")


@pytest.mark.parametrize("lines", [50_000, 2])
def test_links_come_back_as_they_were(tmp_path, monkeypatch, lines):
    monkeypatch.setattr("rarepapers.data.alignment.links.LINES", lines)
    (tmp_path / "links").write_text("\ufeff0-0 2-1\n\n3-14\n", encoding="utf-8")
    assert list(read_links(tmp_path / "links")) == [[(0, 0), (2, 1)], [], [(3, 14)]]
    pairs, places = (np.concatenate(parts) for parts in zip(*link_arrays(tmp_path / "links"), strict=True))
    assert pairs.tolist() == [0, 0, 2]
    assert places.tolist() == [[0, 0], [2, 1], [3, 14]]


@pytest.mark.parametrize("text", ["0-0 1\n", "a-b\n", "0-0-1\n"])
def test_what_is_no_links_is_refused(tmp_path, text):
    (tmp_path / "links").write_text(text)
    with pytest.raises(UserError, match="holds something other than links"):
        list(read_links(tmp_path / "links"))
