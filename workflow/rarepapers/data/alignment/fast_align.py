"""Word alignment with the original programs fast_align and atools (Dyer et al. 2013)."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from rarepapers.core.errors import UserError
from rarepapers.data.alignment.links import count_lines, read_links
from rarepapers.data.alignment.sentences import read_sentences

PROGRAMS = ("fast_align", "atools")
# Favour the diagonal, optimise its tension, variational Bayes.
OPTIONS = ("-d", "-o", "-v")
# Separator of the two sides in the programs' input, and its replacement if it occurs as a token.
SEPARATOR, REPLACED = "|||", "¦¦¦"


def find_programs() -> dict[str, str]:
    """Paths of the programs that are on PATH."""
    places = {name: shutil.which(name) for name in PROGRAMS}
    return {name: place for name, place in places.items() if place}


def align(source: Path, target: Path, symmetrisation: str, folder: Path) -> Iterator[list[tuple[int, int]]]:
    """Symmetrised links of each pair of lines: sorted positions of source and target tokens, from 0.

    Both directions use one thread, because counts are sums of floating-point numbers. folder: for temporary files.
    Raises UserError from `read_sentences`, and if a program is missing or fails.
    """
    programs = find_programs()
    missing = [name for name in PROGRAMS if name not in programs]
    if missing:
        raise UserError(f"{' and '.join(missing)} not found on PATH; install it or align with --tool numpy")
    joined, links = folder / "joined", folder / "links"
    _write_joined(source, target, joined)
    directions = {"forward": (), "reverse": ("-r",)}
    for name, reverse in directions.items():
        _run([programs["fast_align"], "-i", str(joined), *OPTIONS, *reverse], folder / name)
    sides = [str(folder / name) for name in directions]
    _run([programs["atools"], "-i", sides[0], "-j", sides[1], "-c", symmetrisation], links)
    found, expected = count_lines(links), count_lines(joined)
    if found != expected:
        raise UserError(f"fast_align gave links of {found:,} pairs, but {source} has {expected:,}; align again")
    yield from read_links(links)


def _write_joined(source: Path, target: Path, joined: Path) -> None:
    """Write pairs in fast_align's format, `a b ||| c d` per line.

    A token equal to the separator is replaced, so that the number of tokens stays the same.
    """
    with open(joined, "w", encoding="utf-8", newline="\n") as file:
        for sides in read_sentences(source, target):
            parts = (" ".join(REPLACED if token == SEPARATOR else token for token in tokens) for tokens in sides)
            file.write(f" {SEPARATOR} ".join(parts) + "\n")


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
