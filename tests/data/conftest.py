"""Small HTTP server with faults on request, and an archive to serve."""

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from made_files import OTHER, TEXT, make_tar

from rarepapers.data.download import http_transfer


@dataclass
class Server:
    """Serves `files` (path: bytes) and records `requests`: (path, Range header or None)."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    # path: for each coming request, the number of bytes after which the connection breaks
    breaks: dict[str, list[int]] = field(default_factory=dict)
    # path: for each coming request, the status of the answer
    statuses: dict[str, list[int]] = field(default_factory=dict)
    ranges: bool = True


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(http_transfer, "PAUSE", 0)


@pytest.fixture
def archive(tmp_path):
    """Bytes of a tar.gz that holds plays/hamlet.txt and plays/silence.txt."""
    path = make_tar(tmp_path / "made.tgz", [("plays/hamlet.txt", TEXT), ("plays/silence.txt", OTHER)])
    body = path.read_bytes()
    path.unlink()
    return body


@pytest.fixture
def server():
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            wanted = self.headers.get("Range")
            state.requests.append((self.path, wanted))
            agent = self.headers.get("User-Agent", "")
            if "python" in agent.lower():
                return self.answer(403, b"robots are not welcome")
            if state.statuses.get(self.path):
                return self.answer(state.statuses[self.path].pop(0), b"")
            if self.path not in state.files:
                return self.answer(404, b"nothing here")
            body = state.files[self.path]
            if wanted and state.ranges:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if start >= len(body):
                    return self.answer(416, b"")
                return self.answer(206, body[start:], {"Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"})
            return self.answer(200, body)

        def answer(self, status, body, headers=None):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            if state.breaks.get(self.path):
                self.wfile.write(body[: state.breaks[self.path].pop(0)])
                self.wfile.flush()
                self.close_connection = True
            else:
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{http.server_port}"
    yield state
    http.shutdown()
    http.server_close()
    thread.join()
