"""The command `synthesise`: seeded text in an invented language, of any kind of corpus."""

import argparse
from pathlib import Path

from raretok.core.errors import UserError
from raretok.core.files import atomic_path
from raretok.data.catalogue import find_corpus, load_corpora
from raretok.data.synthetic.synthetic_characters import characters


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpora", required=True, type=Path, help="the list of corpora, config/corpora.yaml")
    parser.add_argument("--corpus", required=True, help="a corpus of that list with `synthetic`")
    parser.add_argument(
        "--output",
        required=True,
        type=Path,
        help="the text to write (UTF-8); of kinds language and translation the folder of its splits",
    )


def main(arguments: argparse.Namespace) -> None:
    corpora = load_corpora(arguments.corpora)
    corpus = find_corpus(corpora, arguments.corpus)
    if "synthetic" not in corpus:
        raise UserError(f"corpus {arguments.corpus} of {arguments.corpora} is not synthetic; give it `synthetic`")
    if corpus["kind"] == "language":
        from raretok.data.synthetic.synthetic_language import write_language

        write_language(arguments.output, corpus["synthetic"]["seed"], corpus["synthetic"]["words"])
        return
    if corpus["kind"] == "translation":
        from raretok.data.synthetic.synthetic_pairs import write_pairs

        write_pairs(arguments.output, corpus["synthetic"]["seed"], corpus["synthetic"]["pairs"])
        return
    if corpus["kind"] == "unigrams":
        from raretok.data.synthetic.synthetic_pairs import write_documents

        of = find_corpus(corpora, corpus["synthetic"]["of"])["synthetic"]
        write_documents(arguments.output, corpus["synthetic"]["seed"], of, corpus["synthetic"]["documents"])
        return
    text = characters(corpus["synthetic"]["seed"], corpus["synthetic"]["length"])
    with atomic_path(arguments.output) as temporary:
        temporary.write_bytes(text.encode("utf-8"))
