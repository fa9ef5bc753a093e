"""Downloads: cache, lock, mirror, and messages about missing files."""

import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest
from made_files import OTHER, TEXT, make_zip, member, published, wanted

from raretok.__main__ import main
from raretok.core.errors import UserError
from raretok.data.catalogue import file_params, file_sources
from raretok.data.download.download_command import fetch


def test_plain_file_leaves_nothing_in_the_cache(server, tmp_path):
    server.files["/text"] = TEXT
    output = tmp_path / "out" / "text.txt"
    fetch(wanted(published(TEXT, f"{server.url}/text")), output, tmp_path / "cache", wait=0)
    assert output.read_bytes() == TEXT
    assert [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()] == ["text.txt.lock"]


def test_members_of_one_archive_come_from_one_download(server, tmp_path, archive):
    server.files["/plays.tgz"] = archive
    file = published(archive, f"{server.url}/plays.tgz", path="plays.tgz", archive="tar")
    for name, body in (("plays/hamlet.txt", TEXT), ("plays/silence.txt", OTHER)):
        fetch(wanted(file, member(name, body)), tmp_path / name, tmp_path / "cache", wait=0)
        assert (tmp_path / name).read_bytes() == body
    assert len(server.requests) == 1


def test_changed_archive_in_the_cache_is_downloaded_again(server, tmp_path, archive):
    server.files["/plays.tgz"] = archive
    file = published(archive, f"{server.url}/plays.tgz", path="plays.tgz", archive="tar")
    cached = tmp_path / "cache" / "plays" / "plays.tgz"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"an older edition")
    fetch(wanted(file, member("plays/hamlet.txt", TEXT)), tmp_path / "out", tmp_path / "cache", wait=0)
    assert (tmp_path / "out").read_bytes() == TEXT


def test_wrong_member_names_expected_and_found(server, tmp_path, archive):
    server.files["/plays.tgz"] = archive
    file = published(archive, f"{server.url}/plays.tgz", path="plays.tgz", archive="tar")
    with pytest.raises(UserError, match=r"plays/hamlet.txt in .*plays.tgz is not .* expected .* found"):
        fetch(wanted(file, member("plays/hamlet.txt", OTHER)), tmp_path / "out", tmp_path / "cache", wait=0)
    assert not (tmp_path / "out").exists()


def _fetch_in_a_process(task, output, cache):
    fetch(task, output, cache, wait=0)


def test_jobs_at_the_same_time_share_one_download(server, tmp_path, archive):
    server.files["/plays.tgz"] = archive
    file = published(archive, f"{server.url}/plays.tgz", path="plays.tgz", archive="tar")
    context = multiprocessing.get_context("fork")
    jobs = []
    for number in range(6):
        name, body = [("plays/hamlet.txt", TEXT), ("plays/silence.txt", OTHER)][number % 2]
        task = wanted(file, member(name, body))
        arguments = (task, tmp_path / f"out{number}", tmp_path / "cache")
        jobs.append((context.Process(target=_fetch_in_a_process, args=arguments), number, body))
    for job, _, _ in jobs:
        job.start()
    for job, number, body in jobs:
        job.join()
        assert job.exitcode == 0
        assert (tmp_path / f"out{number}").read_bytes() == body
    assert len(server.requests) == 1


def test_offline_names_file_urls_and_both_ways_out(tmp_path):
    task = wanted(published(TEXT, "http://127.0.0.1:9/text"), mirror="shelf")
    with pytest.raises(UserError) as raised:
        fetch(task, tmp_path / "out", tmp_path / "cache", wait=0)
    message = str(raised.value)
    for part in (
        "text.txt",
        "http://127.0.0.1:9/text",
        "cache/plays/text.txt",
        "shelf/text.txt",
        "data_mirror",
    ):
        assert part in message
    assert "\n" not in message


def test_file_put_into_the_cache_by_hand_is_taken(tmp_path):
    file = published(TEXT, manual="ask the authors")
    with pytest.raises(UserError, match=r"ask the authors; then put the file at .*cache/plays/text.txt"):
        fetch(wanted(file), tmp_path / "out", tmp_path / "cache", wait=0)
    (tmp_path / "cache" / "plays" / "text.txt").write_bytes(TEXT)
    fetch(wanted(file), tmp_path / "out", tmp_path / "cache", wait=0)
    assert (tmp_path / "out").read_bytes() == TEXT


@pytest.mark.parametrize(
    "place", ["shelf/plays/hamlet.txt", "plays/plays/hamlet.txt", "plays/hamlet.txt", "shelf/hamlet.txt"]
)
def test_mirror_with_loose_members(tmp_path, server, place):
    path = tmp_path / "mirror" / place
    path.parent.mkdir(parents=True)
    path.write_bytes(TEXT)
    file = published(b"unknown", f"{server.url}/plays.tgz", path="plays.tgz", archive="tar")
    task = wanted(file, member("plays/hamlet.txt", TEXT), mirror="shelf")
    fetch(task, tmp_path / "out", tmp_path / "cache", tmp_path / "mirror")
    assert (tmp_path / "out").read_bytes() == TEXT
    assert server.requests == []


@pytest.mark.parametrize("place", ["plays/plays.zip", "plays.zip"])
def test_mirror_with_the_archive(tmp_path, place):
    path = tmp_path / "mirror" / place
    path.parent.mkdir(parents=True)
    make_zip(path, [("plays/hamlet.txt", TEXT)])
    file = published(path.read_bytes(), path="plays.zip", archive="zip")
    fetch(
        wanted(file, member("plays/hamlet.txt", TEXT)),
        tmp_path / "out",
        tmp_path / "cache",
        tmp_path / "mirror",
    )
    assert (tmp_path / "out").read_bytes() == TEXT
    assert not (tmp_path / "cache").exists()


def test_mirror_prefers_the_checked_archive_to_an_unchecked_member(tmp_path):
    folder = tmp_path / "mirror" / "plays"
    folder.mkdir(parents=True)
    make_zip(folder / "plays.zip", [("hamlet.txt", TEXT)])
    (folder / "hamlet.txt").write_bytes(b"who knows")
    file = published((folder / "plays.zip").read_bytes(), path="plays.zip", archive="zip")
    unchecked = replace(member("hamlet.txt", TEXT), size=None, checksum=None)
    fetch(wanted(file, unchecked), tmp_path / "out", tmp_path / "cache", tmp_path / "mirror")
    assert (tmp_path / "out").read_bytes() == TEXT


def test_wrong_file_in_a_mirror_is_named_with_expected_and_found(tmp_path):
    path = tmp_path / "mirror" / "plays" / "text.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(TEXT[:-1] + b"!")
    file = published(TEXT)
    with pytest.raises(UserError) as raised:
        fetch(wanted(file), tmp_path / "out", tmp_path / "cache", tmp_path / "mirror")
    message = str(raised.value)
    assert str(path) in message
    assert file.checksum.removeprefix("sha256:") in message
    assert "found" in message
    assert not (tmp_path / "out").exists()


def test_missing_in_the_mirror_asks_no_server(tmp_path, server):
    (tmp_path / "mirror").mkdir()
    server.files["/text"] = TEXT
    task = wanted(published(TEXT, f"{server.url}/text"))
    with pytest.raises(UserError, match=r"lacks text.txt of plays; put it there as plays/text.txt"):
        fetch(task, tmp_path / "out", tmp_path / "cache", tmp_path / "mirror")
    with pytest.raises(UserError, match=r"there is not a folder .*elsewhere; correct data_mirror"):
        fetch(task, tmp_path / "out", tmp_path / "cache", tmp_path / "elsewhere")
    assert server.requests == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_full_disk_is_one_sentence(server, tmp_path, capsys):
    server.files["/text"] = TEXT
    file = {"urls": [f"{server.url}/text"], "size": len(TEXT), "checksum": None, "note": "a test"}
    listed = ({"plays": {"files": {"text.txt": file}}}, "plays", "text.txt")
    part = tmp_path / "cache" / "plays" / "text.txt.part"
    part.parent.mkdir(parents=True)
    part.symlink_to("/dev/full")
    options = ["--dataset", "plays", "--entry", file_params(*listed), "--sources", file_sources(*listed)]
    options += ["--output", tmp_path / "out", "--cache", tmp_path / "cache", "--data-mirror"]
    assert main(["download", *map(str, options)]) == 2
    message = capsys.readouterr().err.strip().splitlines()[-1]
    assert message.startswith("raretok download: error: the disk is full: text.txt of plays does not fit into")
    assert not (tmp_path / "out").exists()
