"""Files that are either whole or not there: temporary name, fsync, rename."""

import contextlib
import json
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from raretok.core.errors import UserError


@contextlib.contextmanager
def atomic_path(target: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `target`; when the block ends without an error it becomes `target`.

    The file is flushed to disk before the rename, and the folder after it, so that a reader (or a run that
    was killed) sees the old content or the new, never a part. The temporary name keeps the target's suffix,
    because writers such as numpy and matplotlib choose the format by it.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}.", suffix=f".part{target.suffix}")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files private; results are for everyone the umask lets read them.
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
    """Write `value` to `target` atomically, as readable JSON; a NaN or an infinity is refused."""
    write_text(target, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def copy_file(source: Path | str, target: Path | str) -> None:
    """Copy a file to `target` atomically."""
    with atomic_path(target) as temporary:
        shutil.copyfile(source, temporary)


def read_json(source: Path | str):
    """The value in the JSON file `source`."""
    return json.loads(Path(source).read_text(encoding="utf-8"))


def read_arrays(source: Path | str) -> dict:
    """The arrays in the npz file `source`; UserError for one that is damaged."""
    # Here, since every start of Snakemake loads this module.
    import numpy as np

    try:
        with np.load(source, allow_pickle=False) as archive:
            return dict(archive)
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError) as error:
        raise UserError(f"{source} is damaged ({error}); delete it and run the workflow again") from None


# The one key of the metadata that our files of tensors have (`raretok.core.tensor_files`), JSON of all that is said of
# them.
METADATA = "raretok"


def read_tensor_header(source: Path) -> tuple[int, dict]:
    """Where the data of a safetensors file begin, and its header; for who has no torch.

    The format: the header's length (8 bytes, little endian), the header (JSON), the tensors' bytes. Raises ValueError
    for a file that is none.
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
    """The path of a file as a link from a page in `folder`."""
    return Path(os.path.relpath(path, folder)).as_posix()
