"""Word alignment with the original programs fast_align and atools (Dyer et al. 2013)."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from raretok.core.errors import UserError
from raretok.data.alignment.links import read_links

PROGRAMS = ("fast_align", "atools")
# Favour the diagonal, optimise its tension, variational Bayes.
OPTIONS = ("-d", "-o", "-v")


def find_programs() -> dict[str, str]:
    """Paths of the programs that are on PATH."""
    places = {name: shutil.which(name) for name in PROGRAMS}
    return {name: place for name, place in places.items() if place}


def align(joined: Path, symmetrisation: str, folder: Path) -> Iterator[list[tuple[int, int]]]:
    """Symmetrised links of each pair in the file `joined`: sorted positions of source and target tokens, from 0.

    Both directions use one thread, because counts are sums of floating-point numbers. folder: for temporary files.
    Raises UserError if a program is missing or fails.
    """
    programs = find_programs()
    missing = [name for name in PROGRAMS if name not in programs]
    if missing:
        raise UserError(f"{' and '.join(missing)} not found on PATH; install it or align with --tool numpy")
    directions = {"forward": (), "reverse": ("-r",)}
    for name, reverse in directions.items():
        _run([programs["fast_align"], "-i", str(joined), *OPTIONS, *reverse], folder / name)
    sides = [str(folder / name) for name in directions]
    _run([programs["atools"], "-i", sides[0], "-j", sides[1], "-c", symmetrisation], folder / "links")
    yield from read_links(folder / "links")


def versions() -> dict[str, str]:
    """First digits of the programs' checksums, since they have no version numbers."""
    return {
        name: "sha256 " + hashlib.sha256(Path(place).read_bytes()).hexdigest()[:16]
        for name, place in find_programs().items()
    }


def _run(command: list[str], output: Path) -> None:
    """Run a program with its standard output in `output`; raises UserError with its last words if it fails."""
    with open(output, "wb") as file:
        done = subprocess.run(
            command, stdout=file, stderr=subprocess.PIPE, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=False
        )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UserError(f"{command[0]} failed with status {done.returncode}: {said[-1] if said else 'it said nothing'}")
