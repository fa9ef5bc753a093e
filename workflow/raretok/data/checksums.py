"""Checksums of prepared ids, computed from the numbers and independent of the file format."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np

# Number of ids read at a time.
CHUNK = 1 << 22


def checksum_of(arrays: Iterable[np.ndarray | Path]) -> str:
    """sha256 over the bytes of arrays of ids and of files, in order."""
    checksum = hashlib.sha256()
    for part in arrays:
        if isinstance(part, Path):
            with part.open("rb") as stream:
                while block := stream.read(CHUNK):
                    checksum.update(block)
        else:
            for at in range(0, len(part), CHUNK):
                checksum.update(np.ascontiguousarray(part[at : at + CHUNK]))
    return checksum.hexdigest()
