"""Atomic file writing (temporary name, fsync, rename), and reading of JSON, arrays and tensor headers."""

import contextlib
import json
import math
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from rarepapers.core.errors import UserError


@contextlib.contextmanager
def atomic_path(target: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `target`, which replaces `target` if the block ends without an error.

    The file is flushed to disk before the rename and its folder after it, so that a reader sees the old or the new
    content, never a part, even after a kill. The temporary name keeps the suffix of `target`, because writers such as
    numpy and matplotlib choose the format by it.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}.", suffix=f".part{target.suffix}")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp creates private files; results get the permissions of the umask.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        _sync(temporary)
        os.replace(temporary, target)
        _sync(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(target: Path | str, text: str) -> None:
    """Write `text` to `target` atomically, as UTF-8."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(target: Path | str, value: object) -> None:
    """Write `value` to `target` atomically, as readable JSON; raises ValueError for NaN and infinity."""
    write_text(target, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def copy_file(source: Path | str, target: Path | str) -> None:
    """Copy a file to `target` atomically."""
    with atomic_path(target) as temporary:
        shutil.copyfile(source, temporary)


def read_json(source: Path | str):
    """The value in the JSON file `source`; see `parse_json`."""
    return parse_json(Path(source).read_text(encoding="utf-8"), str(source))


def parse_json(text: str, source: str):
    """The value of a JSON text, which `source` names in errors.

    Raises UserError for a number that is not finite: NaN and Infinity, which Python would read, and 1e999. Raises
    ValueError for text that is no JSON.
    """

    def refuse(number: str):
        # Of several equal texts the first that is no part of a string
        tokens = JSON_TOKEN.finditer(text)
        start = next((token.start() for token in tokens if token[0] == number), 0)
        line = text.count("\n", 0, start) + 1
        raise UserError(f"{source}, line {line}: {number} is not a finite number; correct it or make the file again")

    def finite(number: str) -> float:
        value = float(number)
        return value if math.isfinite(value) else refuse(number)

    return json.loads(text, parse_float=finite, parse_constant=refuse)


# A string or a number in JSON
JSON_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|-?\w[\w.+-]*')


def read_arrays(source: Path | str) -> dict:
    """The arrays in the npz file `source`; raises UserError if it is damaged."""
    # Imported here because every start of Snakemake loads this module.
    import numpy as np

    try:
        with np.load(source, allow_pickle=False) as archive:
            return dict(archive)
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError) as error:
        raise UserError(f"{source} is damaged ({error}); delete it and run the workflow again") from None


# The state of an unfinished training, in its state folder (`rarepapers.training.checkpoint`).
CHECKPOINT = "checkpoint.safetensors"
# The single metadata key of our tensor files (`rarepapers.core.tensor_files`); its value is JSON.
METADATA = "raretok"


def read_tensor_header(source: Path) -> tuple[int, dict]:
    """Offset of the data in a safetensors file, and its header; needs no torch.

    Format: length of the header (8 bytes, little endian), header (JSON), tensor data. Raises ValueError for any other
    file.
    """
    with source.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > source.stat().st_size:
            raise ValueError(f"{source} is no safetensors file")
        return 8 + length, json.loads(file.read(length))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def relative_link(path: Path, folder: Path) -> str:
    """The path of a file relative to a page in `folder`."""
    return Path(os.path.relpath(path, folder)).as_posix()
