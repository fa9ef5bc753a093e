"""Methods by the names of their parts, as a config writes them: `{"gate": {"name": "agps", "mu_1": 5.0}}`."""

import dataclasses
import importlib

from raretok.methods import Method
from raretok.methods.parts import Part

DEFAULTS = {"loss": {"name": "cross_entropy"}, "embedding_update": {"name": "separated", "reading": "matrix"}}


def build_method(settings: dict) -> Method:
    """The method with these parts; a part is the dataclass of the module of its name with its kind."""
    settings = DEFAULTS | settings
    parts = {kind: _part(kind, **spec) for kind, spec in settings.items() if isinstance(spec, dict)}
    return Method(**settings | parts)


def _part(kind: str, name: str, **parameters) -> object:
    module = importlib.import_module(f"raretok.methods.{name}")
    classes = (part for part in vars(module).values() if isinstance(part, type) and part.__module__ == module.__name__)
    (part,) = (
        part for part in classes if dataclasses.is_dataclass(part) and issubclass(part, Part) and part.kind == kind
    )
    return part(**parameters)
