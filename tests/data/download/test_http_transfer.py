"""HTTP transfer: order of URLs, retries, resumption, checks."""

import pytest
from made_files import published

from raretok.core.errors import UserError
from raretok.data.download.http_transfer import ATTEMPTS, CHUNK, download

# Several chunks, so that a break in the middle leaves some behind.
BODY = bytes(range(256)) * (4 * CHUNK // 256) + b"the end"
HALF = len(BODY) // 2


def test_second_url_is_tried_after_404(server, tmp_path):
    server.files["/good"] = BODY
    download(published(BODY, f"{server.url}/gone", f"{server.url}/good"), tmp_path / "text.txt", wait=0)
    assert (tmp_path / "text.txt").read_bytes() == BODY
    assert [path for path, _ in server.requests] == ["/gone", "/good"]


def test_server_that_refuses_python_is_asked_like_a_browser(server, tmp_path):
    server.files["/text"] = BODY
    download(published(BODY, f"{server.url}/text"), tmp_path / "text.txt", wait=0)
    assert (tmp_path / "text.txt").read_bytes() == BODY


def test_broken_connection_continues_where_it_broke(server, tmp_path):
    server.files["/text"] = BODY
    server.breaks["/text"] = [HALF]
    download(published(BODY, f"{server.url}/text"), tmp_path / "text.txt", wait=0)
    assert (tmp_path / "text.txt").read_bytes() == BODY
    (_, first), (_, second) = server.requests
    assert first is None
    began_at = int(second.removeprefix("bytes=").removesuffix("-"))
    assert 0 < began_at <= HALF
    assert not list(tmp_path.glob("*.part"))


def test_a_later_job_continues_the_earlier_ones_part(server, tmp_path):
    server.files["/text"] = BODY
    (tmp_path / "text.txt.part").write_bytes(BODY[:1000])
    download(published(BODY, f"{server.url}/text"), tmp_path / "text.txt", wait=0)
    assert (tmp_path / "text.txt").read_bytes() == BODY
    assert server.requests == [("/text", "bytes=1000-")]


def test_failure_leaves_the_part_for_the_next_job(server, tmp_path):
    server.files["/text"] = BODY
    server.breaks["/text"] = [HALF] + [0] * (ATTEMPTS - 1)
    with pytest.raises(UserError, match="broke off"):
        download(published(BODY, f"{server.url}/text"), tmp_path / "text.txt", wait=0)
    assert not (tmp_path / "text.txt").exists()
    part = (tmp_path / "text.txt.part").read_bytes()
    assert part
    assert BODY.startswith(part)


def test_part_is_thrown_away_if_the_server_knows_no_ranges(server, tmp_path):
    server.files["/text"] = BODY
    server.ranges = False
    (tmp_path / "text.txt.part").write_bytes(BODY[:1000])
    download(published(BODY, f"{server.url}/text"), tmp_path / "text.txt", wait=0)
    assert (tmp_path / "text.txt").read_bytes() == BODY
    assert len(server.requests) == 1


def test_part_of_another_file_is_thrown_away(server, tmp_path):
    server.files["/text"] = BODY
    (tmp_path / "text.txt.part").write_bytes(b"#" * 1000)
    download(published(BODY, f"{server.url}/text"), tmp_path / "text.txt", wait=0)
    assert (tmp_path / "text.txt").read_bytes() == BODY
    assert [asked for _, asked in server.requests] == ["bytes=1000-", None]


@pytest.mark.parametrize("facts", [{}, {"size": None}])
def test_whole_part_is_not_downloaded_again(server, tmp_path, facts):
    server.files["/text"] = BODY
    (tmp_path / "text.txt.part").write_bytes(BODY)
    download(published(BODY, f"{server.url}/text", **facts), tmp_path / "text.txt", wait=0)
    assert (tmp_path / "text.txt").read_bytes() == BODY
    assert None not in [asked for _, asked in server.requests]


def test_too_long_part_is_thrown_away(server, tmp_path):
    server.files["/text"] = BODY
    (tmp_path / "text.txt.part").write_bytes(BODY + b"more")
    download(published(BODY, f"{server.url}/text"), tmp_path / "text.txt", wait=0)
    assert (tmp_path / "text.txt").read_bytes() == BODY


def test_busy_server_is_asked_again(server, tmp_path):
    server.files["/text"] = BODY
    server.statuses["/text"] = [503, 429]
    download(published(BODY, f"{server.url}/text"), tmp_path / "text.txt", wait=0)
    assert len(server.requests) == 3


def test_wrong_checksum_names_expected_and_found(server, tmp_path):
    server.files["/text"] = BODY[:-1] + b"!"
    file = published(BODY, f"{server.url}/text")
    with pytest.raises(UserError) as raised:
        download(file, tmp_path / "text.txt", wait=0)
    assert file.checksum.removeprefix("sha256:") in str(raised.value)
    assert "found" in str(raised.value)
    assert list(tmp_path.iterdir()) == []
    assert len(server.requests) == 1


def test_wrong_checksum_goes_on_to_the_next_url(server, tmp_path):
    server.files |= {"/bad": BODY[:-1] + b"!", "/good": BODY}
    download(published(BODY, f"{server.url}/bad", f"{server.url}/good"), tmp_path / "text.txt", wait=0)
    assert (tmp_path / "text.txt").read_bytes() == BODY


def test_wrong_size_is_enough_where_no_checksum_is_published(server, tmp_path):
    server.files["/text"] = BODY[:-1]
    with pytest.raises(UserError, match="wrong size: expected"):
        download(published(BODY, f"{server.url}/text", checksum=None), tmp_path / "text.txt", wait=0)


def test_halves_of_two_hosts_are_not_joined_without_a_checksum(server, tmp_path):
    server.files |= {"/one": b"1" * len(BODY), "/two": b"2" * len(BODY)}
    server.breaks["/one"] = [HALF] + [0] * (ATTEMPTS - 1)
    file = published(BODY, f"{server.url}/one", f"{server.url}/two", checksum=None, size=None)
    download(file, tmp_path / "text.txt", wait=0)
    assert set((tmp_path / "text.txt").read_bytes()) == {ord("2")}


def test_no_network_is_one_sentence_with_all_urls(tmp_path):
    # Port 9 of this machine: refused at once, and no name has to be looked up.
    file = published(BODY, "http://127.0.0.1:9/a", "http://127.0.0.1:9/b")
    with pytest.raises(UserError) as raised:
        download(file, tmp_path / "text.txt", wait=0)
    message = str(raised.value)
    assert "http://127.0.0.1:9/a (no connection), http://127.0.0.1:9/b (no connection)" in message
    assert "\n" not in message
