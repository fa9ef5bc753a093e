"""The command `align`: words of a parallel text linked in both directions, the directions put together."""

import argparse
import tempfile
from importlib.metadata import version
from pathlib import Path

from raretok.alignment import fast_align, systran
from raretok.alignment.links import write_links
from raretok.alignment.sentences import write_joined
from raretok.errors import UserError
from raretok.files import write_json
from raretok.sources import code_of

TOOLS = ("auto", "systran", "fast_align")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `align`."""
    parser.add_argument("--source", type=Path, required=True, help="source lines, tokens between spaces")
    parser.add_argument("--target", type=Path, required=True, help="target lines, tokens between spaces")
    parser.add_argument(
        "--tool",
        choices=TOOLS,
        default="auto",
        help="auto: the programs fast_align and atools where both are on PATH, else systran (default: %(default)s)",
    )
    parser.add_argument(
        "--symmetrisation",
        choices=fast_align.SYMMETRISATIONS,
        default=systran.SYMMETRISATION,
        help="how both directions become one; systran knows the default alone (default: %(default)s)",
    )
    parser.add_argument("--output", type=Path, required=True, help="links to write, in Pharaoh's format")
    parser.add_argument(
        "--record", type=Path, help="JSON of what aligned (default: the output's name with the suffix .json)"
    )


def main(arguments: argparse.Namespace) -> None:
    """Align and say how."""
    align(
        arguments.source,
        arguments.target,
        arguments.output,
        arguments.record or arguments.output.with_suffix(".json"),
        arguments.tool,
        arguments.symmetrisation,
    )


def align(
    source: Path,
    target: Path,
    output: Path,
    record: Path,
    tool: str = "auto",
    symmetrisation: str = systran.SYMMETRISATION,
) -> None:
    """Write links of all pairs to `output` and what made them to `record`: tool, version, options, numbers.

    One thread and the same links every time. Raises UserError for texts that do not belong together, a tool that is
    not there, or a symmetrisation that it lacks.
    """
    if tool == "auto":
        tool = "fast_align" if len(fast_align.found()) == len(fast_align.PROGRAMS) else "systran"
    if tool == "systran" and symmetrisation != systran.SYMMETRISATION:
        raise UserError(
            f"systran-align has no symmetrisation {symmetrisation}, only {systran.SYMMETRISATION}; take that, or put "
            "the programs fast_align and atools on PATH"
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    # Beside the output: temporary files are as large as the corpus.
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".align.") as name:
        folder = Path(name)
        joined = folder / "joined"
        expected = write_joined(source, target, joined)
        if tool == "systran":
            pairs, links = write_links(output, systran.align(source, target, joined, folder))
            made = {
                "version": version("systran-align"),
                "options": systran.OPTIONS | {"link_tension": systran.LINK_TENSION},
            }
        else:
            pairs, links = write_links(output, fast_align.align(joined, symmetrisation, folder))
            made = {"version": fast_align.versions(), "options": list(fast_align.OPTIONS)}
    if pairs != expected:
        output.unlink()
        raise UserError(f"{tool} gave links of {pairs:,} pairs, but {source} has {expected:,}; align again")
    made |= {"sources": code_of(__name__)}
    write_json(
        record, {"tool": tool, **made, "symmetrisation": symmetrisation, "threads": 1, "pairs": pairs, "links": links}
    )
