"""Tokenizers: pieces of lines of text, and the text of pieces; one module per tokenizer.

A tokenizer `{name: bpe_joint, merges: 8000}` of config is the class `BpeJoint` of `data/tokenizers/bpe_joint.py`. No
module here imports a library at the top, since Snakemake reads their config types on every dry run. A class has

    corpora                   kind of its corpora: `language` or `translation`
    config                    TypedDict of its config entry; a published file is a mapping of data set and file
    files                     names of the files that `save(folder)` writes
    types(entry)              upper bound of the vocabulary size, known before the text is
    learn(name, entry, text)  the tokenizer of a corpus's entry, learnt on its training text; further arguments go to
                              the manifest. `text`: batches of lines; for translation, prepared lines of both sides
    read(path)                a published tokenizer
    load(folder)              the tokenizer that `save(folder)` wrote to a prepared corpus
    described                 its manifest entry

and, for language corpora,

    encode(lines)             raw ids of all lines, each ending with END; 0 to 3 are the special types
    symbols                   the text of every raw id
    kept                      number of types that the vocabulary keeps, the most frequent; None: all
    marks_words               whether the piece of a word depends on a space before it
    split(text)               the pieces of a text, as in `symbols`; nothing is stripped
    join(symbols)             their text, special types by their names

or, for translation corpora,

    split(lines)              the pieces of each line
    join(pieces)              the line, without special types
"""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import reduce
from operator import or_
from pathlib import Path

from rarepapers.core.code_digest import tokenizer_module
from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json
from rarepapers.core.type_check import each

# File of a prepared corpus that names its tokenizer.
TOKENIZER = "tokenizer.json"
# Config entry of a published file.
Published = each(str, "dataset", "file")


def tokenizer_class(name: str) -> type:
    """The class of a tokenizer by its name in config."""
    return getattr(importlib.import_module(tokenizer_module(name)), "".join(map(str.capitalize, name.split("_"))))


def config_type(corpora: str) -> object:
    """Config type of a tokenizer for this kind of corpora: the union of all tokenizers' types."""
    found = (tokenizer_class(module.name) for module in pkgutil.iter_modules(__path__))
    return reduce(or_, (one.config for one in found if one.corpora == corpora))


def published_file(entry: Mapping) -> Mapping | None:
    """Data set and file of the published part of a tokenizer's entry, if it has one."""
    return next((value for value in entry.values() if isinstance(value, Mapping)), None)


def read_published(name: str, entry: Mapping, path: Path | None) -> object:
    """The published tokenizer of corpus `name`; raises UserError if no file is given."""
    if path is None:
        raise UserError(
            f"corpus {name} of config/corpora.yaml takes a published tokenizer; give its file by --published"
        )
    return tokenizer_class(entry["name"]).read(path)


def load_tokenizer(folder: Path) -> object:
    """The tokenizer of the prepared corpus in `folder`."""
    return tokenizer_class(read_json(folder / TOKENIZER)["name"]).load(folder)
