"""Final files that are kept in the state folder."""

import os

import pytest

from rarepapers.core.files import write_json
from rarepapers.training.finished_files import FILES, RECORD, keep, restore

IDENTITY = {"run": "hash", "data": "data", "sources": "sources"}


@pytest.fixture
def kept(tmp_path):
    """The folder of the kept files; the output was deleted."""
    output = tmp_path / "output"
    output.mkdir()
    for name in FILES:
        (output / name).write_text(name)
    write_json(output / RECORD, IDENTITY | {"hash": "hash"})
    keep(output, tmp_path / "kept")
    for name in FILES:
        (output / name).unlink()
    return tmp_path / "kept"


def test_restored_files_are_links_and_the_kept_ones_are_not_touched(tmp_path, kept):
    """A kill at any moment leaves them complete."""
    before = {name: (kept / name).stat().st_ino for name in FILES}
    (tmp_path / "output" / FILES[0]).write_text("part of an earlier attempt")
    assert not restore(kept, tmp_path / "output", IDENTITY | {"data": "other"})
    assert restore(kept, tmp_path / "output", IDENTITY)
    assert {name: (kept / name).stat().st_ino for name in FILES} == before
    assert {name: (tmp_path / "output" / name).stat().st_ino for name in FILES} == before


def test_restored_files_are_newer_than_the_input(tmp_path, kept):
    for name in FILES:
        os.utime(kept / name, (1, 1))
    assert restore(kept, tmp_path / "output", IDENTITY)
    assert all((tmp_path / "output" / name).stat().st_mtime > 1 for name in FILES)


def test_without_links_files_are_copied(tmp_path, kept, monkeypatch):
    def refused(*_):
        raise OSError("no links")

    monkeypatch.setattr(os, "link", refused)
    assert restore(kept, tmp_path / "new" / "output", IDENTITY)
    for name in FILES:
        assert (tmp_path / "new" / "output" / name).read_bytes() == (kept / name).read_bytes()
