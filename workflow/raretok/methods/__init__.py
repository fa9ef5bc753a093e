"""Methods: compositions of parts named in config.

A part `{name: threshold, margin: 1}` of kind `loss` is the dataclass `Loss` of `raretok/methods/threshold.py`;
its fields are the part's parameters. No file here imports torch at the top, because Snakemake reads the
dataclasses on every dry run.

May import core.
"""

import dataclasses
import importlib
import types
import typing
from dataclasses import dataclass

from raretok.core.errors import UserError

# Kind of part: name of its dataclass.
KINDS = {
    "loss": "Loss",
    "gate": "Gate",
    "penalty": "Penalty",
    "perturbation": "Perturbation",
    "embedding_update": "EmbeddingUpdate",
}
DEFAULTS = {
    "loss": {"name": "cross_entropy"},
    "embedding_update": {"name": "separated", "reading": "matrix"},
    "training_temperature": 1.0,
}


@dataclass(frozen=True)
class TrainingFacts:
    """What a gate may know about the training it serves, before the first update.

    counts: how often each type is a target of the training split (numpy array, V integers); None where a task
    cannot say. special: ids that are never rare (padding, end of line, ...). tokens_per_step: targets of one
    update, over all processes; their mean where updates differ. steps_per_epoch: updates that see the training split
    once. rare: how a scaled run derives what a paper prints (`training.rare` of its settings: alpha, share, mass,
    tokens), or None for the printed numbers themselves. device: where the state lives. padding: the target that is no
    token, or None. source_counts: of a translation, how often each type stands in the source side of the training
    split (like counts): what is rare as a target can be a frequent word of the other language.
    """

    counts: object
    special: tuple[int, ...]
    tokens_per_step: int | float
    steps_per_epoch: int
    rare: dict | None = None
    device: str = "cpu"
    padding: int | None = None
    source_counts: object = None


@dataclass(frozen=True)
class Method:
    """One method: a loss and how embeddings are updated, and optional parts."""

    loss: object
    embedding_update: object
    gate: object = None
    penalty: object = None
    perturbation: object = None
    training_temperature: float = 1.0


def build_method(settings: dict, where: str = "method") -> Method:
    """The method that `settings` (a run's `method`) describe.

    Raises UserError naming `where` and the key for a part, parameter or value that does not exist.
    """
    settings = DEFAULTS | settings
    temperature = settings["training_temperature"]
    if not temperature > 0:
        raise UserError(f"{where}.training_temperature is {temperature}; it must be above 0")
    parts = {kind: build_part(kind, spec, f"{where}.{kind}") for kind, spec in settings.items() if kind in KINDS}
    method = Method(**parts, training_temperature=temperature)
    if method.gate is not None and not getattr(method.loss, "combines_with_gates", True):
        raise UserError(f"{where}: a gate and the contrastive loss do not combine; leave one of them out")
    leaves_rows = getattr(method.gate, "part", None) == "all" or method.embedding_update.skips_rows
    if leaves_rows and hasattr(method.penalty, "parametrise"):
        raise UserError(
            f"{where}: the penalty makes the output matrix from factors, which have no rows to leave alone; "
            "leave out the penalty, or the frozen gate and the skipping embedding_update"
        )
    return method


def part_names(settings: dict) -> list[str]:
    """Names of the files of `raretok/methods` that a method is made of, defaults included."""
    return sorted({part["name"] for part in (DEFAULTS | settings).values() if isinstance(part, dict)})


def build_part(kind: str, spec: dict, where: str) -> object:
    """One part from `{name: ..., parameters}`; see `build_method` for errors."""
    parameters = dict(spec)
    part_class = find_part(kind, parameters.pop("name", None), where)
    fields = {field.name: field for field in dataclasses.fields(part_class)}
    for name, value in parameters.items():
        if name not in fields:
            raise UserError(f"{where}.{name} is not a parameter of {spec['name']}; known: {', '.join(fields)}")
        parameters[name] = _checked(value, fields[name].type, f"{where}.{name}")
    try:
        return part_class(**parameters)
    except (TypeError, ValueError) as error:
        raise UserError(f"{where} ({spec['name']}): {str(error).removeprefix(part_class.__name__)}") from None


def find_part(kind: str, name: str | None, where: str) -> type:
    """The dataclass of a part; raises UserError where no such file or no such kind of part is."""
    module_name = f"{__name__}.{name}"
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name:
            raise
        raise UserError(f"{where}.name is {name!r}, but there is no workflow/raretok/methods/{name}.py") from None
    if not hasattr(module, KINDS[kind]):
        raise UserError(f"{where}.name is {name!r}, which is no {kind}")
    return getattr(module, KINDS[kind])


def _checked(value, annotation, where: str):
    """`value` as the annotated type: whole numbers become floats where floats are meant, nothing else changes."""
    if isinstance(annotation, types.UnionType):
        allowed = typing.get_args(annotation)
    else:
        allowed = (annotation,)
    if value is None and type(None) in allowed:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and float in allowed and int not in allowed:
        return float(value)
    if any(type(value) is kind for kind in allowed):
        return value
    expected = " or ".join(kind.__name__ for kind in allowed if kind is not type(None))
    raise UserError(f"{where} is {value!r}; it must be of type {expected}")
