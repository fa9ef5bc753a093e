"""HTTP downloads: several URLs, retries, continuation of partial files, and verification."""

import os
import sys
import time
from pathlib import Path

import pooch
import requests
from tqdm import tqdm

from rarepapers.core.errors import UserError
from rarepapers.data.catalogue import Member, Published
from raretok import __version__

# Some hosts of public corpora answer 403 to the default user agents of Python libraries.
USER_AGENT = f"Mozilla/5.0 (compatible; rarepapers/{__version__})"
ATTEMPTS = 3
TIMEOUT = 30  # seconds without data
# Seconds before the second attempt at a URL; the pause doubles before each further one.
PAUSE = 1.0
CHUNK = 2**16
# Request timeout and too many requests are as temporary as server errors (5xx).
PASSING = (408, 429)
RANGE_NOT_SATISFIABLE = 416
# Errors in words for the user, since the library's messages have several lines. The first match counts.
IN_WORDS = {
    requests.Timeout: "timed out",
    requests.exceptions.ChunkedEncodingError: "the connection broke off",
    requests.exceptions.SSLError: "the host's certificate was refused",
    requests.ConnectionError: "no connection",
}


def download(published: Published, target: Path) -> None:
    """Download the file to `target`, from the first of its URLs that serves the right bytes.

    Partial data lies in `<target>.part`, and a later call continues it. Raises UserError if no URL served the file,
    with a reason for each.
    """
    part = target.with_name(f"{target.name}.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    reasons = []
    for url in published.urls:
        if not published.checksum and reasons:
            # Without a checksum, parts from two hosts could be joined unnoticed.
            part.unlink(missing_ok=True)
        reason = _try_url(url, published, part)
        if reason is None:
            os.replace(part, target)
            return
        reasons.append(f"{url} ({reason})")
    raise UserError(f"cannot download {target.name}, tried {', '.join(reasons)}")


def _try_url(url: str, published: Published, part: Path) -> str | None:
    """Download `url` to `part`; returns the reason of failure, or None if the bytes are right."""
    reason = None
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE * 2 ** (attempt - 1))
        began_at = part.stat().st_size if part.exists() else 0
        try:
            if not began_at or began_at != published.size:
                _transfer(url, part, began_at)
        except requests.HTTPError as error:
            status = error.response.status_code
            reason = f"HTTP status {status}"
            if status == RANGE_NOT_SATISFIABLE and published.checksum and not difference(part, published):
                return None  # already complete: killed between the last byte and the rename
            if status == RANGE_NOT_SATISFIABLE:
                part.unlink()
            elif status < 500 and status not in PASSING:
                return reason
            continue
        except requests.RequestException as error:
            reason = next((words for kind, words in IN_WORDS.items() if isinstance(error, kind)), type(error).__name__)
            continue
        reason = difference(part, published)
        if reason is None:
            return None
        part.unlink()
        if not began_at:
            return reason
        # The older part may be wrong: try once more from the first byte.
    return reason


def difference(path: Path, published: Published | Member) -> str | None:
    """The difference of the file at `path` from `published`, with expected and actual value; None if there is none."""
    size = path.stat().st_size
    if published.size is not None and size != published.size:
        return f"wrong size: expected {published.size:,} bytes, found {size:,}"
    if published.checksum is not None:
        algorithm, expected = published.checksum.split(":")
        found = pooch.file_hash(str(path), alg=algorithm)
        if found != expected:
            return f"wrong {algorithm}: expected {expected}, found {found}"
    return None


def _transfer(url: str, part: Path, began_at: int) -> None:
    """Append to `part` the bytes after its first `began_at`, or write all bytes if the server ignores ranges."""
    # With a compressed transfer, byte positions of file and stream would differ.
    headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
    if began_at:
        headers["Range"] = f"bytes={began_at}-"
    # In a log file, ten updates per second of a progress bar would be noise.
    pause = 0.1 if sys.stderr.isatty() else 10
    # pooch sets the total; until then, tqdm needs one that is not 0.
    options = {"total": 1, "unit": "B", "unit_scale": True, "mininterval": pause, "delay": pause}
    with tqdm(desc=part.stem, **options) as bar, part.open("ab") as stream:

        def restart_if_whole(response: requests.Response, **_) -> None:
            if began_at and response.status_code == requests.codes.ok:
                stream.truncate(0)

        fetch = pooch.HTTPDownloader(
            progressbar=bar,
            chunk_size=CHUNK,
            headers=headers,
            timeout=TIMEOUT,
            hooks={"response": restart_if_whole},
        )
        fetch(url, stream, pooch=None)
