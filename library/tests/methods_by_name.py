"""Methods by the names of their parts, as a config writes them: `{"gate": {"name": "agps", "mu_1": 5.0}}`."""

import importlib

from raretok.methods import Method

DEFAULTS = {"loss": {"name": "cross_entropy"}, "embedding_update": {"name": "separated", "reading": "matrix"}}


def build_method(settings: dict) -> Method:
    """The method with these parts; a part is the dataclass of the module of its name with its kind."""
    settings = DEFAULTS | settings
    parts = {kind: _part(kind, **spec) for kind, spec in settings.items() if isinstance(spec, dict)}
    return Method(**settings | parts)


def _part(kind: str, name: str, **parameters) -> object:
    classes = vars(importlib.import_module(f"raretok.methods.{name}")).values()
    (part,) = (one for one in classes if getattr(one, "kind", None) == kind and one.__module__.endswith(f".{name}"))
    return part(**parameters)
