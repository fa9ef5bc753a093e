"""Downloads: cache, lock, mirror, and messages about missing files."""

import multiprocessing
from pathlib import Path

import pytest
from made_files import OTHER, TEXT, make_zip, member, published, wanted

from rarepapers.__main__ import main
from rarepapers.core.errors import UserError
from rarepapers.data.catalogue import Member, file_params, file_sources
from rarepapers.data.download.download_command import fetch


@pytest.fixture
def get(tmp_path):
    """Fetch a file; its contents."""

    def get(task, mirror=None):
        fetch(task, tmp_path / "out", tmp_path / "cache", mirror)
        return (tmp_path / "out").read_bytes()

    return get


@pytest.fixture
def plays(server, archive):
    """The archive on a server, and its catalogue entry."""
    server.files["/plays.tgz"] = archive
    return published(archive, f"{server.url}/plays.tgz", path="plays.tgz", archive="tar")


def test_plain_file_leaves_nothing_in_the_cache(server, tmp_path, get):
    server.files["/text"] = TEXT
    assert get(wanted(published(TEXT, f"{server.url}/text"))) == TEXT
    assert [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()] == ["text.txt.lock"]


def test_changed_archive_in_the_cache_is_downloaded_again(plays, tmp_path, get):
    cached = tmp_path / "cache" / "plays" / "plays.tgz"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"an older edition")
    assert get(wanted(plays, member("plays/hamlet.txt", TEXT))) == TEXT


def test_wrong_member_names_expected_and_found(plays, tmp_path, get):
    with pytest.raises(UserError, match=r"plays/hamlet.txt in .*plays.tgz is not .* expected .* found"):
        get(wanted(plays, member("plays/hamlet.txt", OTHER)))
    assert not (tmp_path / "out").exists()


def test_concurrent_jobs_share_one_download(server, plays, tmp_path):
    context = multiprocessing.get_context("fork")
    jobs = []
    for number in range(6):
        name, body = [("plays/hamlet.txt", TEXT), ("plays/silence.txt", OTHER)][number % 2]
        arguments = (wanted(plays, member(name, body)), tmp_path / f"out{number}", tmp_path / "cache")
        jobs.append((context.Process(target=fetch, args=arguments), number, body))
    for job, _, _ in jobs:
        job.start()
    for job, number, body in jobs:
        job.join()
        assert job.exitcode == 0
        assert (tmp_path / f"out{number}").read_bytes() == body
    assert len(server.requests) == 1


def test_the_offline_error_names_file_urls_and_two_solutions(get):
    with pytest.raises(UserError) as raised:
        get(wanted(published(TEXT, "http://127.0.0.1:9/text"), mirror="shelf"))
    message = str(raised.value)
    for part in ("text.txt", "http://127.0.0.1:9/text", "cache/plays/text.txt", "shelf/text.txt", "data_mirror"):
        assert part in message
    assert "\n" not in message


def test_file_put_into_the_cache_by_hand_is_taken(tmp_path, get):
    file = published(TEXT, manual="ask the authors")
    with pytest.raises(UserError, match=r"ask the authors; then put the file at .*cache/plays/text.txt"):
        get(wanted(file))
    (tmp_path / "cache" / "plays" / "text.txt").write_bytes(TEXT)
    assert get(wanted(file)) == TEXT


@pytest.mark.parametrize(
    "place", ["shelf/plays/hamlet.txt", "plays/plays/hamlet.txt", "plays/hamlet.txt", "shelf/hamlet.txt"]
)
def test_mirror_with_loose_members(tmp_path, server, get, place):
    path = tmp_path / "mirror" / place
    path.parent.mkdir(parents=True)
    path.write_bytes(TEXT)
    file = published(b"unknown", f"{server.url}/plays.tgz", path="plays.tgz", archive="tar")
    assert get(wanted(file, member("plays/hamlet.txt", TEXT), mirror="shelf"), tmp_path / "mirror") == TEXT
    assert server.requests == []


@pytest.mark.parametrize("place", ["plays/plays.zip", "plays.zip"])
def test_mirror_with_the_archive(tmp_path, get, place):
    path = tmp_path / "mirror" / place
    path.parent.mkdir(parents=True)
    make_zip(path, [("plays/hamlet.txt", TEXT)])
    file = published(path.read_bytes(), path="plays.zip", archive="zip")
    assert get(wanted(file, member("plays/hamlet.txt", TEXT)), tmp_path / "mirror") == TEXT
    assert not (tmp_path / "cache").exists()


def test_mirror_prefers_the_checked_archive_to_an_unchecked_member(tmp_path, get):
    folder = tmp_path / "mirror" / "plays"
    folder.mkdir(parents=True)
    make_zip(folder / "plays.zip", [("hamlet.txt", TEXT)])
    (folder / "hamlet.txt").write_bytes(b"who knows")
    file = published((folder / "plays.zip").read_bytes(), path="plays.zip", archive="zip")
    assert get(wanted(file, Member("hamlet.txt")), tmp_path / "mirror") == TEXT


def test_wrong_file_in_a_mirror_is_named_with_expected_and_found(tmp_path, get):
    path = tmp_path / "mirror" / "plays" / "text.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(TEXT[:-1] + b"!")
    file = published(TEXT)
    with pytest.raises(UserError, match=rf"{path} is not .*{file.checksum.removeprefix('sha256:')}, found"):
        get(wanted(file), tmp_path / "mirror")
    assert not (tmp_path / "out").exists()


def test_a_file_missing_in_the_mirror_is_not_downloaded(tmp_path, server, get):
    (tmp_path / "mirror").mkdir()
    server.files["/text"] = TEXT
    task = wanted(published(TEXT, f"{server.url}/text"))
    with pytest.raises(UserError, match=r"lacks text.txt of plays; put it there as plays/text.txt"):
        get(task, tmp_path / "mirror")
    with pytest.raises(UserError, match=r"elsewhere is not a folder; correct data_mirror"):
        get(task, tmp_path / "elsewhere")
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


def test_a_file_without_a_published_checksum_keeps_that_of_its_first_use(server, tmp_path, get, capsys):
    task = wanted(published(TEXT, f"{server.url}/text", checksum=None, size=None))
    server.files["/text"] = TEXT
    assert get(task) == TEXT
    assert "no checksum is published; sha256 " in capsys.readouterr().err
    assert get(task) == TEXT
    server.files["/text"] = OTHER
    with pytest.raises(UserError, match=r"had [0-9a-f]{64} when it was first used; get the first file again, or"):
        get(task)
    mirror = tmp_path / "mirror" / "plays"
    mirror.mkdir(parents=True)
    (mirror / "text.txt").write_bytes(OTHER)
    with pytest.raises(UserError, match="when it was first used"):
        get(task, tmp_path / "mirror")
    # As the message says.
    for path in (tmp_path / "cache" / "plays").glob("text.txt*"):
        path.unlink()
    assert get(task) == OTHER
