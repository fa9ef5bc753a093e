"""Filling a data mirror: present files, downloads, and the table of the rest."""

import hashlib
import shutil
from pathlib import Path

import pytest
import yaml
from made_files import OTHER, TEXT, make_tar, member, published, wanted

from rarepapers.__main__ import main
from rarepapers.data.download import http_transfer
from rarepapers.data.download.download_command import fetch
from rarepapers.planning.fetch import BY_HAND, DONE, MISSING, fill, survey, survey_text

ROOT = Path(__file__).parents[3]
TERMS = {"plays": {"licence": "old enough"}}


@pytest.fixture(autouse=True)
def no_patience(monkeypatch):
    monkeypatch.setattr(http_transfer, "ATTEMPTS", 1)


def members(archive, *urls, **changes):
    file = published(archive, *urls, path="plays.tgz", archive="tar", **changes)
    return [wanted(file, member("plays/hamlet.txt", TEXT)), wanted(file, member("plays/silence.txt", OTHER))]


def states(rows):
    return [row.state for row in rows]


def filled(files, mirror):
    """The rows of a mirror after an attempt to fill it."""
    rows = survey(files, mirror)
    fill(rows, mirror)
    return rows


def test_the_filled_mirror_needs_no_network(server, tmp_path, archive):
    server.files |= {"/plays.tgz": archive, "/text": TEXT}
    mirror = tmp_path / "mirror"
    files = [*members(archive, f"{server.url}/plays.tgz"), wanted(published(TEXT, f"{server.url}/text"))]
    rows = survey(files, mirror)
    assert states(rows) == [MISSING, MISSING]
    assert server.requests == []
    fill(rows, mirror)
    assert states(rows) == [DONE, DONE]
    asked = len(server.requests)
    assert asked == 2  # one download per archive, for any number of members
    assert sorted(path.name for path in mirror.rglob("*") if path.is_file()) == ["plays.tgz", "text.txt"]
    for number, file in enumerate(files):
        fetch(file, tmp_path / f"out{number}", tmp_path / "cache", mirror)
    assert (tmp_path / "out1").read_bytes() == OTHER
    assert states(filled(files, mirror)) == [DONE, DONE]
    assert len(server.requests) == asked


def test_an_interrupted_download_continues(server, tmp_path):
    body = TEXT * 1000
    server.files["/text"] = body
    server.breaks["/text"] = [len(body) // 2]
    files = [wanted(published(body, f"{server.url}/text"))]
    (row,) = filled(files, tmp_path)
    assert row.state == MISSING
    assert "broke off" in row.remedy
    assert states(filled(files, tmp_path)) == [DONE]
    assert server.requests[-1][1].startswith("bytes=")


def test_a_broken_download_is_repeated_and_a_foreign_file_named(server, tmp_path):
    server.files["/text"] = TEXT
    files = [wanted(published(TEXT, f"{server.url}/text"), mirror="shelf")]
    own, foreign = tmp_path / "plays" / "text.txt", tmp_path / "shelf" / "text.txt"
    own.parent.mkdir()
    own.write_bytes(TEXT[:-1] + b"!")
    assert states(filled(files, tmp_path)) == [DONE]
    assert own.read_bytes() == TEXT
    foreign.parent.mkdir()
    foreign.write_bytes(b"something else")
    (row,) = survey(files, tmp_path)
    assert row.state == BY_HAND
    assert row.remedy.startswith(f"{foreign}: not the published file (wrong size")


def test_loose_members_are_enough(tmp_path, archive):
    files = members(archive)
    for file, body in zip(files, (TEXT, OTHER), strict=True):
        (tmp_path / file.name).parent.mkdir(exist_ok=True)
        (tmp_path / file.name).write_bytes(body)
    (row,) = survey(files, tmp_path)
    assert row.state == DONE
    assert row.size == len(TEXT) + len(OTHER)
    (tmp_path / files[1].name).unlink()
    (row,) = survey(members(archive, "http://127.0.0.1:9/plays.tgz"), tmp_path)
    assert row.state == MISSING


def test_files_to_fetch_by_hand_are_listed_with_their_path(tmp_path, archive):
    files = members(archive, checksum=None, size=None, manual="ask the authors")
    (row,) = survey(files, tmp_path)
    assert (row.state, row.remedy) == (BY_HAND, f"ask the authors; then put the file at {tmp_path}/plays/plays.tgz")
    (tmp_path / "plays").mkdir()
    (tmp_path / "plays" / "plays.tgz").write_bytes(archive)
    assert states(survey(files, tmp_path)) == [DONE]


def test_an_archive_without_a_checksum_is_opened(server, tmp_path):
    whole = make_tar(tmp_path / "made.tgz", [("plays/hamlet.txt", TEXT)]).read_bytes()
    server.files["/plays.tgz"] = whole
    (row,) = filled(members(whole, f"{server.url}/plays.tgz", checksum=None, size=None), tmp_path / "mirror")
    assert row.state == MISSING
    assert "has no member plays/silence.txt" in row.remedy


def test_the_table_has_sizes_terms_states_and_totals(tmp_path, archive):
    files = [
        wanted(published(TEXT, "http://127.0.0.1:9/text")),
        *members(archive, size=None, checksum=None, manual="ask the authors"),
    ]
    text = "\n".join(survey_text(filled(files, tmp_path), TERMS))
    for part in (
        "plays (old enough)",
        "text.txt           2.1 kB  missing",
        "plays.tgz   not published  by hand",
        "missing: 1 of 2 files, 2.1 kB\n",
        "by hand: 1 of 2 files, 1 of unpublished size",
        "- plays/plays.tgz: ask the authors; then put the file at",
        "http://127.0.0.1:9/text (no connection)",
    ):
        assert part in text


@pytest.fixture
def root(tmp_path, server):
    """A project whose tiny Shakespeare is a text on the test's server."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    path = tmp_path / "config" / "datasets.yaml"
    datasets = yaml.safe_load(path.read_text())
    checksum = f"sha256:{hashlib.sha256(TEXT).hexdigest()}"
    facts = {"urls": [f"{server.url}/input"], "size": len(TEXT), "checksum": checksum}
    datasets["tiny_shakespeare"]["files"]["input.txt"] |= facts
    path.write_text(yaml.safe_dump(datasets, sort_keys=False))
    return tmp_path


def command(root, *arguments):
    options = ["--root", root, "--mirror", root / "mirror", "--papers", "stop_jostling", *arguments]
    return main(["fetch", *map(str, options)])


def test_the_exit_status_says_whether_a_file_is_missing(root, server, capsys):
    server.files["/input"] = TEXT
    assert command(root, "--scale", "small", "--dry-run") == 2
    assert server.requests == []
    assert "1 of 1 files are not in" in capsys.readouterr().err
    assert command(root, "--scale", "small") == 0
    assert "done: 1 of 1 files, 2.1 kB" in capsys.readouterr().out
    server.files.clear()
    assert command(root, "--scale", "small") == 0
    assert command(root, "--scale", "smoke") == 0
    assert "needs no file from outside" in capsys.readouterr().out
    assert command(root, "--scale", "small", "--config", "gpt2_weights=hub", "--dry-run") == 2
    assert "gpt2-xl" in capsys.readouterr().out


def test_without_network_each_file_has_one_error(root, capsys):
    assert command(root, "--scale", "small") == 2
    captured = capsys.readouterr()
    assert "cannot download input.txt, tried http://" in captured.out
    assert captured.err.strip().splitlines()[-1].startswith("raretok fetch: error: 1 of 1 files are not in")
    assert command(root, "--scale", "small", "--config", "nothing") == 2
    assert "--config takes KEY=VALUE, not 'nothing'" in capsys.readouterr().err
