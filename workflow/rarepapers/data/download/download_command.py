"""The command `download`: get one file of a data set from its URLs or a data mirror, and verify it."""

import argparse
import errno
import hashlib
import os
import shutil
import sys
from pathlib import Path

from filelock import FileLock

from rarepapers.core.errors import UserError
from rarepapers.core.files import atomic_path, copy_file, write_text
from rarepapers.data.catalogue import Member, Published, Wanted, read_wanted
from rarepapers.data.download.http_transfer import difference, download
from rarepapers.data.download.unpack import unpack


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", required=True, help="name of the data set")
    parser.add_argument("--entry", required=True, help="JSON of the file, or of an archive and its member")
    parser.add_argument("--sources", required=True, help="JSON of its URLs, manual instructions and mirror folder")
    parser.add_argument("--output", required=True, type=Path, help="path of the file to write")
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path("resources/cache"),
        help="folder for archives and unfinished downloads (default: %(default)s)",
    )
    parser.add_argument(
        "--data-mirror",
        nargs="?",
        help="folder to take the file from instead of downloading it (without a value: no mirror)",
    )


def main(arguments: argparse.Namespace) -> None:
    wanted = read_wanted(arguments.dataset, arguments.entry, arguments.sources)
    mirror = Path(arguments.data_mirror) if arguments.data_mirror else None
    try:
        fetch(wanted, arguments.output, arguments.cache, mirror)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise UserError(
            f"the disk is full: {wanted.name} of {wanted.dataset} does not fit into "
            f"{arguments.output.parent} or {arguments.cache}; make room and start again, "
            "the partial download is kept"
        ) from error


def fetch(wanted: Wanted, output: Path, cache: Path, mirror: Path | None = None) -> None:
    """Put the `wanted` file at `output`, verified and atomically.

    With a `mirror`, everything is taken from that folder and nothing from the network. Otherwise the published file is
    downloaded to `cache`/<data set>/; archives stay there, so that all members come from one download. A lock
    serialises jobs that need members of one archive. Raises UserError if the file is not available or differs from the
    published one.
    """
    if mirror is not None:
        _from_mirror(wanted, output, mirror, cache)
        return
    cached = published_path(wanted, cache)
    with _lock(cached):
        _ensure(wanted, cached)
        if wanted.member is None:
            with atomic_path(output) as temporary:
                shutil.move(cached, temporary)
    if wanted.member is not None:
        _unpack(wanted, cached, output)


def keep(group: list[Wanted], folder: Path) -> None:
    """Put one published file into `folder` in the layout of a data mirror: an archive as a whole.

    group: the file, or the members that are needed of it. Raises UserError if the file is not available, and if an
    archive without a published checksum lacks a member or is damaged.
    """
    first = group[0]
    kept = published_path(first, folder)
    with _lock(kept) as lock:
        _ensure(first, kept)
        if first.file.archive and first.file.checksum is None:
            for wanted in group:
                unpack(kept, first.file.archive, wanted.member.path, Path(os.devnull))
    Path(lock.lock_file).unlink(missing_ok=True)


def published_path(wanted: Wanted, folder: Path) -> Path:
    """Path of the published file in `folder`, a cache or a data mirror."""
    return folder / wanted.dataset / wanted.file.path


def _lock(path: Path) -> FileLock:
    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(f"{path}.lock")


def _ensure(wanted: Wanted, cached: Path) -> None:
    """Download the published file to `cached` unless it is there."""
    if cached.exists():
        wrong = difference(cached, wanted.file)
        if wrong is None:
            return
        print(f"{cached} is not the file of config/datasets.yaml ({wrong}): downloading it again", file=sys.stderr)
        cached.unlink()
    by_hand = (
        f"put the file at {cached}, or into a folder as {wanted.mirror}/{wanted.file.path} "
        "and name that folder as data_mirror in config/config.yaml"
    )
    if not wanted.file.urls:
        raise UserError(
            f"{wanted.file.path} of {wanted.dataset} cannot be downloaded: {wanted.file.manual}; then {by_hand}"
        )
    try:
        download(wanted.file, cached)
    except UserError as error:
        raise UserError(f"{error}; check the network and start again, or {by_hand}") from error
    if wanted.file.checksum is None:
        _check_first_use(cached, f"{cached}.sha256")


def _from_mirror(wanted: Wanted, output: Path, mirror: Path, cache: Path) -> None:
    """Copy the file from the folder `mirror`, or unpack it from its archive there."""
    if not mirror.is_dir():
        raise UserError(f"{mirror} is not a folder; correct data_mirror in config/config.yaml")
    source, held = in_mirror(wanted, mirror)
    if source is None:
        names = " or ".join(dict.fromkeys((wanted.name, wanted.file.path)))
        otherwise = wanted.file.manual or "or set data_mirror in config/config.yaml to null to download it"
        raise UserError(
            f"the data mirror {mirror} lacks {names} of {wanted.dataset}; put it there as "
            f"{wanted.mirror}/{wanted.name}, {otherwise}"
        )
    wrong = difference(source, held)
    if wrong:
        raise UserError(f"{source} is not the published file ({wrong}); replace it")
    if held.checksum is None:
        _check_first_use(source, cache / wanted.dataset / f"{held.path}.sha256")
    if wanted.member is None or held is wanted.member:
        copy_file(source, output)
    else:
        _unpack(wanted, source, output)


def in_mirror(wanted: Wanted, mirror: Path) -> tuple[Path | None, Published | Member]:
    """The path of a file in a data mirror, not verified (None: missing), and its published form.

    A member comes from its archive or lies there unpacked.
    """
    folders = [mirror / wanted.mirror, mirror / wanted.dataset, mirror]
    archive = _first_file(folders, wanted.file.path)
    if wanted.member is not None:
        loose = _first_file(folders, wanted.member.path)
        # An archive with a checksum identifies a member better than the bare member without one.
        if loose and (wanted.member.checksum or not archive):
            return loose, wanted.member
    return archive, wanted.file


def _first_file(folders: list[Path], name: str) -> Path | None:
    """The first existing `<folder>/<name>`, then the first existing `<folder>/<last part of name>`."""
    candidates = [folder / path for path in (name, Path(name).name) for folder in folders]
    return next((path for path in candidates if path.is_file()), None)


def _unpack(wanted: Wanted, archive: Path, output: Path) -> None:
    with atomic_path(output) as temporary:
        unpack(archive, wanted.file.archive, wanted.member.path, temporary)
        wrong = difference(temporary, wanted.member)
        if wrong:
            raise UserError(
                f"{wanted.member.path} in {archive} is not the published file ({wrong}); "
                "correct config/datasets.yaml or get the archive again"
            )


def _check_first_use(path: Path, noted: Path | str) -> None:
    """Compare a file that has no published checksum with its checksum at its first use, which the file `noted` keeps.

    Raises UserError if they differ: other content would change results without a word.
    """
    noted = Path(noted)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if not noted.exists():
        write_text(noted, f"{digest}\n")
        print(f"{path}: no checksum is published; sha256 {digest} is noted in {noted}", file=sys.stderr)
    elif (first := noted.read_text(encoding="utf-8").strip()) != digest:
        raise UserError(
            f"{path} has sha256 {digest}, but had {first} when it was first used; get the first file again, or delete "
            f"{noted} and {path} to start with the new one"
        )
