"""The command `synthesise`: seeded synthetic text for any kind of corpus."""

import argparse
import json
from pathlib import Path

from rarepapers.core.errors import UserError
from rarepapers.core.files import atomic_path
from rarepapers.data.synthetic.synthetic_characters import characters
from rarepapers.data.synthetic.synthetic_language import write_language
from rarepapers.data.synthetic.synthetic_pairs import write_documents, write_pairs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--entry", required=True, type=json.loads, help="the corpus's entry of config/corpora.yaml, as JSON"
    )
    parser.add_argument(
        "--output", required=True, nargs="+", type=Path, help="the files of its kind, all in one folder"
    )


def main(arguments: argparse.Namespace) -> None:
    kind, made, output = arguments.entry["kind"], arguments.entry.get("synthetic"), arguments.output[0]
    if made is None:
        raise UserError("--entry has no key `synthetic`; give the entry of a synthetic corpus")
    if kind == "language":
        write_language(output.parent, made["seed"], made["words"])
    elif kind == "translation":
        write_pairs(output.parent, made["seed"], made["pairs"])
    elif kind == "unigrams":
        write_documents(output, made["seed"], made["of"], made["documents"])
    else:
        with atomic_path(output) as temporary:
            temporary.write_bytes(characters(made["seed"], made["length"]).encode("utf-8"))
