"""HTTP transfer: order of URLs, retries, resumption, checks."""

import pytest
from made_files import published

from rarepapers.core.errors import UserError
from rarepapers.data.download.http_transfer import ATTEMPTS, CHUNK, download

# Several chunks, so that a break in the middle leaves some.
BODY = bytes(range(256)) * (4 * CHUNK // 256) + b"the end"
HALF = len(BODY) // 2


@pytest.fixture
def get(server, tmp_path):
    """Result of a download of BODY, by default from a server that refuses Python's user agent."""
    server.files["/text"] = BODY

    def get(*paths, **facts):
        urls = [f"{server.url}{path}" for path in paths or ["/text"]]
        download(published(BODY, *urls, **facts), tmp_path / "text.txt")
        return (tmp_path / "text.txt").read_bytes()

    return get


def test_second_url_is_tried_after_404(server, get):
    assert get("/gone", "/text") == BODY
    assert [path for path, _ in server.requests] == ["/gone", "/text"]


def test_broken_connection_continues_where_it_broke(server, get, tmp_path):
    server.breaks["/text"] = [HALF]
    assert get() == BODY
    (_, first), (_, second) = server.requests
    assert first is None
    began_at = int(second.removeprefix("bytes=").removesuffix("-"))
    assert 0 < began_at <= HALF
    assert not list(tmp_path.glob("*.part"))


def test_a_failed_download_keeps_its_part_for_the_next_job(server, get, tmp_path):
    server.breaks["/text"] = [HALF] + [0] * (ATTEMPTS - 1)
    with pytest.raises(UserError, match="broke off"):
        get()
    assert not (tmp_path / "text.txt").exists()
    part = (tmp_path / "text.txt.part").read_bytes()
    assert part
    assert BODY.startswith(part)
    server.requests.clear()
    assert get() == BODY
    assert server.requests == [("/text", f"bytes={len(part)}-")]


@pytest.mark.parametrize(
    ("part", "ranges", "facts", "asked"),
    [
        (BODY[:1000], False, {}, ["bytes=1000-"]),  # the server answers with the whole file
        (b"#" * 1000, True, {}, ["bytes=1000-", None]),  # of another file
        (BODY + b"more", True, {}, [f"bytes={len(BODY) + 4}-", None]),
        (BODY, True, {}, []),
        (BODY, True, {"size": None}, [f"bytes={len(BODY)}-"]),
    ],
)
def test_parts_of_earlier_jobs_are_continued_or_dropped(server, get, tmp_path, part, ranges, facts, asked):
    server.ranges = ranges
    (tmp_path / "text.txt.part").write_bytes(part)
    assert get(**facts) == BODY
    assert [wanted for _, wanted in server.requests] == asked


def test_a_busy_server_is_retried(server, get):
    server.statuses["/text"] = [503, 429]
    assert get() == BODY
    assert len(server.requests) == 3


def test_wrong_checksum_names_expected_and_found(server, get, tmp_path):
    server.files["/bad"] = BODY[:-1] + b"!"
    with pytest.raises(UserError, match=rf"expected {published(BODY).checksum.removeprefix('sha256:')}, found"):
        get("/bad")
    assert list(tmp_path.iterdir()) == []
    assert len(server.requests) == 1
    assert get("/bad", "/text") == BODY


def test_without_a_checksum_a_wrong_size_is_refused(server, get):
    server.files["/text"] = BODY[:-1]
    with pytest.raises(UserError, match="wrong size: expected"):
        get(checksum=None)


def test_halves_of_two_hosts_are_not_joined_without_a_checksum(server, get):
    server.files |= {"/one": b"1" * len(BODY), "/two": b"2" * len(BODY)}
    server.breaks["/one"] = [HALF] + [0] * (ATTEMPTS - 1)
    assert set(get("/one", "/two", checksum=None, size=None)) == {ord("2")}


def test_no_network_is_one_sentence_with_all_urls(tmp_path):
    # Port 9 of this machine refuses at once and needs no name lookup.
    file = published(BODY, "http://127.0.0.1:9/a", "http://127.0.0.1:9/b")
    with pytest.raises(UserError) as raised:
        download(file, tmp_path / "text.txt")
    message = str(raised.value)
    assert "http://127.0.0.1:9/a (no connection), http://127.0.0.1:9/b (no connection)" in message
    assert "\n" not in message
