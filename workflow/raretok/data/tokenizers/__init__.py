"""Tokenizers: how lines of text become pieces, one module per tokenizer.

A tokenizer `{name: bpe_joint, merges: 8000}` of config is the class `BpeJoint` of `data/tokenizers/bpe_joint.py`. No
module here imports a library at the top, since Snakemake reads what they can be told on every dry run. A class has

    corpora                   the kind of corpora that it is for: `language` or `translation`
    config                    what config says of it, a TypedDict; a published file is a mapping of data set and file
    types(entry)              how many types its vocabulary has at most, before the text is there
    learn(name, entry, text)  the tokenizer of a corpus's entry, learnt on its training text; further arguments are for
                              the manifest. `text`: batches of lines; of a translation, prepared lines of both sides
    read(path)                a published one
    load(folder)              the one that `save(folder)` wrote to a prepared corpus
    described                 what the manifest says

and, of a language,

    encode(lines)             raw ids of all lines, each closed by END; 0 to 3 are the special types
    symbols                   the text of every raw id
    kept                      how many of the most frequent types the vocabulary keeps; None: all
    marks_words               whether a word is another piece after a space than at the start of a text
    split(text)               the pieces of a text, as `symbols` has them; nothing is stripped
    join(symbols)             their text, special types by their names

or, of a translation,

    split(lines)              the pieces of each line
    join(pieces)              the line again; special types print nothing
"""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import reduce
from operator import or_
from pathlib import Path

from raretok.core.code_digest import tokenizer_module
from raretok.core.errors import UserError
from raretok.core.files import read_json
from raretok.core.type_check import each

# Where a prepared corpus says which tokenizer it has.
TOKENIZER = "tokenizer.json"
# What config says of a published file.
Published = each(str, "dataset", "file")


def tokenizer_class(name: str) -> type:
    """The class of a tokenizer by its name in config."""
    return getattr(importlib.import_module(tokenizer_module(name)), "".join(map(str.capitalize, name.split("_"))))


def config_type(corpora: str) -> object:
    """What config can say of a tokenizer for this kind of corpora: the types of all that there are."""
    found = (tokenizer_class(module.name) for module in pkgutil.iter_modules(__path__))
    return reduce(or_, (one.config for one in found if one.corpora == corpora))


def published_file(entry: Mapping) -> Mapping | None:
    """Data set and file of the published part of a tokenizer's entry, if it has one."""
    return next((value for value in entry.values() if isinstance(value, Mapping)), None)


def read_published(name: str, entry: Mapping, path: Path | None) -> object:
    """The published tokenizer of corpus `name`; UserError where no file is given."""
    if path is None:
        raise UserError(
            f"corpus {name} of config/corpora.yaml takes a published tokenizer; give its file by --published"
        )
    return tokenizer_class(entry["name"]).read(path)


def load_tokenizer(folder: Path) -> object:
    """The tokenizer of the prepared corpus in `folder`."""
    return tokenizer_class(read_json(folder / TOKENIZER)["name"]).load(folder)
