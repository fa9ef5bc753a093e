"""Unpacking of one archive member to a chosen path; unsafe archives are refused."""

import contextlib
import gzip
import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import dirname, join, normpath
from typing import BinaryIO

from rarepapers.core.errors import UserError

# Errors of the standard library for truncated or invalid archives.
DAMAGED = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError)


def unpack(archive: Path, kind: str, member: str, target: Path) -> None:
    """Write `member` of `archive` (`kind`: tar, zip or gz) to `target`.

    Raises UserError if the archive is damaged, lacks the member, or is unsafe: any member or link leaves its folder, or
    the requested member is a link.
    """
    opener = {"tar": _open_tar, "zip": _open_zip, "gz": _open_gz}[kind]
    try:
        with opener(archive, member) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink, 2**20)
    except DAMAGED as error:
        detail = " ".join(str(error).split())
        raise UserError(f"{archive} is damaged or cut short ({detail}); delete it and start again") from error


@contextlib.contextmanager
def _open_tar(archive: Path, name: str) -> Iterator[BinaryIO]:
    found = None
    with tarfile.open(archive, "r:*") as tar:
        for info in tar:
            _refuse_leaving(archive, info.name)
            # `tarfile.data_filter` is not used: Python 3.11 has it only from 3.11.4 on, and Debian 12 has 3.11.2.
            if info.issym():
                _refuse_leaving(archive, normpath(join(dirname(info.name), info.linkname)))
            elif info.islnk():
                _refuse_leaving(archive, info.linkname)
            if info.name.removeprefix("./") == name:
                found = info
        if found is None:
            raise _missing(archive, name)
        if not found.isreg():
            raise _no_file(archive, name)
        yield tar.extractfile(found)


@contextlib.contextmanager
def _open_zip(archive: Path, name: str) -> Iterator[BinaryIO]:
    found = None
    with zipfile.ZipFile(archive) as zipped:
        for info in zipped.infolist():
            _refuse_leaving(archive, info.filename)
            if info.filename.removeprefix("./") == name:
                found = info
        if found is None:
            raise _missing(archive, name)
        # The upper half of the attributes is the mode if the archive was made on Unix.
        if found.is_dir() or stat.S_ISLNK(found.external_attr >> 16):
            raise _no_file(archive, name)
        if found.flag_bits & 1:
            raise UserError(f"{name} in {archive} is encrypted; get the archive from its publisher")
        with zipped.open(found) as source:
            yield source


@contextlib.contextmanager
def _open_gz(archive: Path, name: str) -> Iterator[BinaryIO]:
    """The one compressed file; `name` is ours, since gz may not store any."""
    if archive.stat().st_size == 0:
        raise EOFError("empty file")  # gzip would read it as compressed nothing
    with gzip.open(archive) as source:
        yield source


def _refuse_leaving(archive: Path, name: str) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in path.parts[:1]:
        raise UserError(f"{archive} is unsafe (its member {name} leaves the folder); get it from its publisher")


def _missing(archive: Path, name: str) -> UserError:
    return UserError(f"{archive} has no member {name}; correct `members` in config/datasets.yaml")


def _no_file(archive: Path, name: str) -> UserError:
    return UserError(f"{archive} is unsafe (its member {name} is a link or no file); get it from its publisher")
