"""Methods, each a composition of parts named in the config.

A part `{name: threshold, margin: 1}` of kind `loss` is the dataclass of `raretok/methods/threshold.py` whose `kind` is
`loss`; its fields are the part's parameters. No file here imports torch at the top, because Snakemake reads the
dataclasses on every dry run.

May import core.
"""

import dataclasses
import importlib
import typing
from collections.abc import Callable
from dataclasses import dataclass

from raretok.core.errors import UserError
from raretok.core.type_check import check_of

KINDS = ("loss", "gate", "penalty", "perturbation", "embedding_update")
DEFAULTS = {
    "loss": {"name": "cross_entropy"},
    "embedding_update": {"name": "separated", "reading": "matrix"},
    "training_temperature": 1.0,
}


@dataclass(frozen=True)
class TrainingFacts:
    """Facts about a run that its method's parts use before the first step.

    counts: how often each type is a target of the training split (numpy array, V integers). special: ids that are never
    rare (padding, end of line, ...). tokens_per_step: mean number of targets per step, over all processes; None until
    the first step if the training code does not know it. steps_per_epoch: steps of one pass over the training split;
    None: derived from counts and tokens_per_step. rare: how a scaled run derives the paper's numbers (`training.rare`
    of its settings: alpha, share, mass, tokens), or None for the printed numbers. device: of the state of losses,
    penalties and perturbations; a gate's is on the CPU. padding: the target id of positions without a target, or None.
    source_counts: like counts, for the source side of a translation, since a rare target type can be a frequent source
    word. earlier_targets: regenerates this process's targets of an earlier step (from 0); if None, a gate that needs
    them must keep them. group: the processes whose targets a gate counts (a `counting.Group`); None: all.
    """

    counts: object
    special: tuple[int, ...]
    tokens_per_step: int | float | None = None
    steps_per_epoch: int | None = None
    rare: dict | None = None
    device: str = "cpu"
    padding: int | None = None
    source_counts: object = None
    earlier_targets: Callable | None = None
    group: object = None


@dataclass(frozen=True)
class Method:
    """A method: a loss, an embedding update, and optional parts; raises ValueError if they do not combine."""

    loss: object
    embedding_update: object
    gate: object = None
    penalty: object = None
    perturbation: object = None
    training_temperature: float = 1.0

    def __post_init__(self):
        if not 0 < self.training_temperature < float("inf"):
            raise ValueError(f"training_temperature is {self.training_temperature}; it must be above 0 and finite")
        if self.gate is not None and not getattr(self.loss, "combines_with_gates", True):
            raise ValueError("a gate and the contrastive loss do not combine; leave one of them out")
        update, freezes = self.embedding_update, getattr(self.gate, "part", None) == "all"
        changes_rows = hasattr(update, "after_step") or hasattr(update, "parametrise")
        by_rows = changes_rows or getattr(update, "skips_rows", False) or hasattr(update, "second_moment")
        if (freezes or by_rows) and hasattr(self.penalty, "parametrise"):
            raise ValueError(
                "the penalty makes the output matrix from factors, which have no rows to leave alone; "
                "leave out the penalty, or the frozen gate and the embedding_update"
            )
        if freezes and changes_rows:
            raise ValueError("the embedding_update changes rows that the gate leaves alone; leave one of them out")

    def started(self, facts: TrainingFacts) -> "Method":
        """This method with its loss, penalty and perturbation started, if they need counts."""
        parts = {kind: getattr(self, kind) for kind in ("loss", "penalty", "perturbation")}
        found = {kind: part.start(facts) for kind, part in parts.items() if hasattr(part, "start")}
        return dataclasses.replace(self, **found)


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
    """Names of the modules in `raretok/methods` that a method uses, including defaults."""
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
    module_name = f"{__name__}.{name}"
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name:
            raise
        raise UserError(f"{where}.name is {name!r}, but there is no workflow/raretok/methods/{name}.py") from None
    # Only classes that the module defines itself.
    parts = (part for part in vars(module).values() if getattr(part, "__module__", None) == module_name)
    found = next((part for part in parts if getattr(part, "kind", None) == kind), None)
    if found is None:
        raise UserError(f"{where}.name is {name!r}, which is no {kind}")
    return found
