"""The command `align`: word links of a parallel text in both directions, symmetrised."""

import argparse
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rarepapers.core.code_digest import code_of
from rarepapers.core.files import write_json
from rarepapers.data.alignment import diagonal_model, fast_align
from rarepapers.data.alignment.links import write_links
from rarepapers.data.alignment.sentences import read_sentences
from rarepapers.data.alignment.symmetrise import SYMMETRISATIONS

# The authors do not name theirs (docs/deviations.md, G11).
SYMMETRISATION = "grow-diag-final-and"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", type=Path, required=True, help="source lines, tokens between spaces")
    parser.add_argument("--target", type=Path, required=True, help="target lines, tokens between spaces")
    parser.add_argument(
        "--tool",
        choices=("auto", "numpy", "fast_align"),
        default="auto",
        help="fast_align: the programs fast_align and atools on PATH; numpy: the same model in this package; auto: the "
        "programs where both are there, else numpy (default: %(default)s)",
    )
    parser.add_argument(
        "--symmetrisation",
        choices=tuple(SYMMETRISATIONS),
        default=SYMMETRISATION,
        help="how to combine the two directions (default: %(default)s)",
    )
    parser.add_argument("--output", type=Path, required=True, help="links to write, in Pharaoh's format")
    parser.add_argument(
        "--record", type=Path, help="JSON of what aligned (default: the output's name with the suffix .json)"
    )


def main(arguments: argparse.Namespace) -> None:
    record = arguments.record or arguments.output.with_suffix(".json")
    align(arguments.source, arguments.target, arguments.output, record, arguments.tool, arguments.symmetrisation)


def align(source: Path, target: Path, output: Path, record: Path, tool: str, symmetrisation: str) -> None:
    """Write links of all pairs to `output` and their provenance to `record`: tool, version, options, numbers.

    Deterministic, with one thread. Raises UserError if the texts do not match or a tool is missing.
    """
    if tool == "auto":
        tool = "fast_align" if len(fast_align.find_programs()) == len(fast_align.PROGRAMS) else "numpy"
    output.parent.mkdir(parents=True, exist_ok=True)
    # In the output folder, because temporary files are as large as the corpus.
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".align.") as name:
        folder = Path(name)
        if tool == "numpy":
            pairs, links = write_links(output, _with_numpy(source, target, symmetrisation, folder))
            made = {"version": np.__version__, "options": diagonal_model.OPTIONS}
        else:
            pairs, links = write_links(output, fast_align.align(source, target, symmetrisation, folder))
            made = {"version": fast_align.versions(), "options": list(fast_align.OPTIONS)}
    made |= {"sources": code_of(__name__)}
    write_json(
        record, {"tool": tool, **made, "symmetrisation": symmetrisation, "threads": 1, "pairs": pairs, "links": links}
    )


def _with_numpy(source: Path, target: Path, symmetrisation: str, folder: Path) -> Iterator[list[tuple[int, int]]]:
    """Symmetrised links of each pair, by this package's implementation of the model."""
    sides = [diagonal_model.number_words(sentences) for sentences in zip(*read_sentences(source, target), strict=True)]
    forward = _by_pair(diagonal_model.link(sides[0], sides[1], folder), sides[1])
    backward = _by_pair(diagonal_model.link(sides[1], sides[0], folder), sides[0])
    put_together = SYMMETRISATIONS[symmetrisation]
    for ahead, back in zip(forward, backward, strict=True):
        yield sorted(put_together(set(ahead), {(i, j) for j, i in back}))


def _by_pair(places: np.ndarray, side: diagonal_model.Side) -> Iterator[list[tuple[int, int]]]:
    """(position in the other sentence, position of the word) of each sentence's linked words; `places`: -1 for none."""
    for start, end in itertools.pairwise(side.starts.tolist()):
        yield [(other, place) for place, other in enumerate(places[start:end].tolist()) if other >= 0]
