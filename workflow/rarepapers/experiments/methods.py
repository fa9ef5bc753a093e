"""Methods as config names them: a part `{name: threshold, margin: 1}` of kind `loss` is the dataclass of
`raretok/methods/threshold.py` whose `kind` is `loss`; its fields are the part's parameters.
"""

import dataclasses
import importlib
import typing

from rarepapers.core.errors import UserError
from rarepapers.core.type_check import check_of
from raretok.methods import Method
from raretok.methods.parts import Part

KINDS = ("loss", "gate", "penalty", "perturbation", "embedding_update")
DEFAULTS = {
    "loss": {"name": "cross_entropy"},
    "embedding_update": {"name": "separated", "reading": "matrix"},
    "training_temperature": 1.0,
}


def build_method(settings: dict, where: str = "method") -> Method:
    """The method described by `settings` (a run's `method`).

    Raises UserError, naming `where` and the key, for a part, parameter or value that does not exist.
    """
    settings = DEFAULTS | settings
    parts = {kind: build_part(kind, spec, f"{where}.{kind}") for kind, spec in settings.items() if kind in KINDS}
    try:
        return Method(**parts, training_temperature=settings["training_temperature"])
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None


def part_names(settings: dict) -> list[str]:
    """Names of the modules in `library/raretok/methods` that a method uses, including defaults."""
    return sorted({part["name"] for part in (DEFAULTS | settings).values() if isinstance(part, dict)})


def build_part(kind: str, spec: dict, where: str) -> object:
    """One part from `{name: ..., parameters}`; see `build_method` for errors."""
    parameters = dict(spec)
    part_class = find_part(kind, parameters.pop("name", None), where)
    fields = {field.name: field for field in dataclasses.fields(part_class)}
    for name, value in parameters.items():
        if name not in fields:
            raise UserError(f"{where}.{name} is not a parameter of {spec['name']}; known: {', '.join(fields)}")
        kind = fields[name].type
        mistake = check_of(kind)(value, f"{where}.{name}")
        if mistake:
            raise UserError(mistake)
        if type(value) is int and int not in (kind, *typing.get_args(kind)):
            parameters[name] = float(value)  # so that 1 and 1.0 have the same run hash
    try:
        return part_class(**parameters)
    except (TypeError, ValueError) as error:
        raise UserError(f"{where} ({spec['name']}): {str(error).removeprefix(part_class.__name__)}") from None


def find_part(kind: str, name: str | None, where: str) -> type:
    """The dataclass of a part; raises UserError if there is no such file or no part of this kind in it."""
    module_name = f"raretok.methods.{name}"
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name:
            raise
        raise UserError(f"{where}.name is {name!r}, but there is no library/raretok/methods/{name}.py") from None
    # A part that its file defines; those in use after `start` are no dataclasses.
    defined = (value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module_name)
    parts = (value for value in defined if issubclass(value, Part) and dataclasses.is_dataclass(value))
    part = next((part for part in parts if part.kind == kind), None)
    if part is None:
        raise UserError(f"{where}.name is {name!r}, which is no {kind}")
    return part
