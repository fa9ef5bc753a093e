"""The command `compare`: significance tests of translations of several methods against the first one."""

import argparse
from pathlib import Path

from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json, write_json
from rarepapers.data.pairs.prepared_pairs import load_pairs
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.metrics.translation_tests import SPLIT, compare_systems


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compare`."""
    parser.add_argument(
        "--manifest", type=Path, required=True, help="manifest.json of the corpus, whose test split has the references"
    )
    parser.add_argument(
        "--hypotheses",
        nargs="+",
        required=True,
        metavar="LABEL=PATH",
        help="translations that `evaluate` wrote; all others are compared with the first",
    )
    parser.add_argument("--samples", type=int, help="samples per test (default: sacrebleu's 1,000 and 10,000)")
    parser.add_argument("--output", type=Path, required=True, help="JSON to write")


def main(arguments: argparse.Namespace) -> None:
    """Write BLEU and chrF of the first system and every other one, with paired bootstrap and randomisation tests."""
    corpus = load_manifest(arguments.manifest)
    references = load_pairs(corpus, SPLIT).texts("target")
    systems = {}
    for pair in arguments.hypotheses:
        label, equals, path = pair.partition("=")
        if not (label and equals and path) or label in systems:
            raise UserError(f"--hypotheses has {pair!r}; each must be LABEL=PATH with a label of its own")
        systems[label] = _lines(Path(path), len(references))
    if len(systems) < 2:
        raise UserError("--hypotheses has one system; name at least two to compare")
    found = compare_systems(systems, references, corpus.scoring, samples=arguments.samples)
    write_json(arguments.output, {"split": SPLIT} | found)


def _lines(path: Path, number: int) -> list[str]:
    """The test translations in a file of `evaluate`; raises UserError unless there is one per reference."""
    try:
        lines = read_json(path)[SPLIT]
    except (OSError, ValueError):
        raise UserError(f"{path} holds no translations; evaluate the run first") from None
    except (KeyError, TypeError):
        raise UserError(f"{path} has no translations of {SPLIT}; evaluate the run with that split") from None
    if len(lines) != number:
        raise UserError(f"{path} has {len(lines):,} translations of {SPLIT}, but there are {number:,} references")
    return lines
