"""Models from token ids to hidden vectors, and the output layer that all methods share.

A model `{name: decoder, layers: 4, ...}` of config is the class `Decoder` of `models/decoder.py`; its options are the
fields of `DecoderConfig` of `models/decoder_config.py`. Neither the config modules nor this file import torch, since
Snakemake reads options on every dry run.

May import core and machine.
"""

import dataclasses
import importlib
import pkgutil
from functools import cache
from typing import Literal, NotRequired, Required, TypedDict

from rarepapers.core.errors import UserError
from rarepapers.core.type_check import check_of

# Weight files of a run by the checkpoint's name in metrics: the best on the validation split, and the last step's.
CHECKPOINTS = {"best": "model.safetensors", "last": "last.safetensors"}


def class_name(model: str) -> str:
    """The class name of a model by its name in config."""
    return "".join(word.capitalize() for word in model.split("_"))


@cache
def config_classes() -> dict[str, type]:
    """The options dataclass of every model, by the model's name in config."""
    modules = [module.name for module in pkgutil.iter_modules(__path__) if module.name.endswith("_config")]
    names = [module.removesuffix("_config") for module in modules]
    return {
        name: getattr(importlib.import_module(f"{__name__}.{name}_config"), f"{class_name(name)}Config")
        for name in names
    }


@cache
def config_type(model: str) -> type:
    """The config type of a model: its name and options except the vocabulary size, which depends on the data."""
    own, fields = config_classes()[model], {"name": Required[Literal[model]]}
    for field in dataclasses.fields(own):
        if field.name != "vocabulary":
            needed = Required if field.default is dataclasses.MISSING else NotRequired
            fields[field.name] = needed[field.type]
    made = TypedDict(class_name(model), fields, total=False)
    made.__doc__, made.described_by = own.__doc__, own
    return made


def build_config(settings: dict, vocabulary: int = 1) -> object:
    """The options described by `settings` (an experiment's `model`); raises UserError if they are wrong."""
    name, known = settings.get("name"), config_classes()
    if name not in known:
        raise UserError(f"model.name is {name!r}; it can be {', '.join(known)}")
    mistake = check_of(config_type(name))(settings, "model")
    if mistake:
        raise UserError(mistake)
    return known[name](vocabulary=vocabulary, **{key: value for key, value in settings.items() if key != "name"})
