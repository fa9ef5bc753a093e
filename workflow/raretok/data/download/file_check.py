"""Verification of a file by published size and checksum."""

from pathlib import Path

import pooch

from raretok.data.catalogue import Member, Published


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
