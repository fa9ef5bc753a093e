"""Training time and memory by machine, extrapolated from the measured rows of config/throughput.yaml.

A model is compared with the measured one of the same machine whose number of operations per target, F, is nearest (by
ratio). For passes (forward, backward, step) over T targets, with N parameters, L layers and width d; ' marks the
measured row:

    seconds = seconds' (F T) / (F' T')
    GiB     = 16 N / 2^30 + (GiB' - 16 N' / 2^30) (T L d) / (T' L' d')

16 bytes per parameter hold weights, gradients and two moments in float32. A run that asks for bfloat16 takes a known
factor longer on a machine that lacks it, if the measured row is in bfloat16.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NotRequired, Required, TypedDict

from rarepapers.core.config_files import read_config
from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json
from rarepapers.core.type_check import AboveZero, Limit, Positive, keys
from rarepapers.experiments.run_code import is_copy
from rarepapers.experiments.run_size import Size, size_of, training_of
from rarepapers.reporting.recorded_precision import NOT_RECORDED, precision_of

GIB_PER_PARAMETER = 16 / 2**30
CPU = "cpu"
BFLOAT16, FLOAT32 = "bfloat16", "float32"


@keys(slower=["than"], than=["slower"])
class MachineFacts(TypedDict, total=False):
    """A machine with measured rows, or one that takes longer than a measured one by a known factor."""

    # How many times as long it takes.
    slower: AboveZero
    # The machine that was measured instead.
    than: str
    # How many times as long a training in bfloat16 takes in float32, on a machine of this kind without bfloat16.
    float32: AboveZero
    source: Required[str]


class Shape(TypedDict):
    """Size of a model; flops: operations per target."""

    layers: AboveZero
    width: Positive
    # Vocabulary size.
    types: Positive
    parameters: Positive
    flops: AboveZero


class MeasuredRow(TypedDict):
    """A timed pass of a training: of one step, or the mean over a whole training."""

    machine: str
    what: str
    shape: Shape
    # Targets of a pass, its seconds and, if known, its peak memory.
    tokens: Positive
    seconds: AboveZero
    gib: NotRequired[AboveZero]
    # In which it was trained; default: bfloat16.
    precision: NotRequired[Literal["float32", "bfloat16"]]
    where: str


class Measurements(TypedDict):
    machines: dict[str, MachineFacts]
    measured: Annotated[list[MeasuredRow], Limit("minItems", 1)]


@dataclass(frozen=True)
class Row:
    """A measured pass of a model of this size over `tokens` targets."""

    size: Size
    tokens: int
    seconds: float
    gib: float | None
    precision: str = BFLOAT16


@dataclass(frozen=True)
class Machine:
    """A machine with its measured rows, or with those of the machine `than`, times `slower`.

    float32: factor of trainings in bfloat16 if the machine lacks it. has_bfloat16: whether it has.
    """

    name: str
    source: str
    than: str | None
    slower: float
    rows: tuple[Row, ...]
    float32: float = 1.0
    has_bfloat16: bool = True

    def seconds(self, size: Size, tokens: int) -> float:
        """Seconds of one pass of a model over `tokens` targets, in the precision of the measured row."""
        row = nearest(self.rows, size)
        return self.slower * row.seconds * size.flops * tokens / (row.size.flops * row.tokens)

    @property
    def precision(self) -> str:
        """The precision here of trainings that ask for bfloat16."""
        return BFLOAT16 if self.has_bfloat16 else FLOAT32

    def training_seconds(self, settings: dict) -> float:
        """Seconds of a training with a run's settings, in the precision that this machine would use."""
        size, training = size_of(settings), training_of(settings)
        seconds = training.steps * training.passes * self.seconds(size, training.tokens)
        return seconds * (self.slowdown(settings) if nearest(self.rows, size).precision == BFLOAT16 else 1.0)

    def slowdown(self, settings: dict) -> float:
        """How many times as long a training takes here as in the precision that its settings ask for."""
        wanted = settings["training"].get("precision")
        return self.float32 if wanted == BFLOAT16 and not self.has_bfloat16 else 1.0

    def gib(self, size: Size, tokens: int) -> float | None:
        """Peak memory of training a model with passes over `tokens` targets; None if no row has a memory."""
        known = [row for row in self.rows if row.gib]
        if not known:
            return None
        row = nearest(known, size)
        rest = max(0.0, row.gib - GIB_PER_PARAMETER * row.size.parameters)
        extent = size.layers * size.width * tokens / (row.size.layers * row.size.width * row.tokens)
        return GIB_PER_PARAMETER * size.parameters + rest * extent


def nearest(rows: Iterable[Row], size: Size) -> Row:
    """The measured row with which a model of this size is compared."""
    return min(rows, key=lambda row: abs(math.log(row.size.flops / size.flops)))


def load(root: Path) -> dict[str, Machine]:
    """The machines of `root`/config/throughput.yaml by name; UserError names file and key of a mistake."""
    path = root / "config" / "throughput.yaml"
    content = read_config(path, Measurements)
    known = content["machines"]
    rows: dict[str, list[Row]] = {}
    for row in content["measured"]:
        if row["machine"] not in known:
            raise UserError(f"{path}: measured names the machine {row['machine']!r}, which is not under machines")
        rows.setdefault(row["machine"], []).append(
            Row(Size(**row["shape"]), row["tokens"], row["seconds"], row.get("gib"), row.get("precision", BFLOAT16))
        )
    machines = {}
    for name, facts in known.items():
        measured = facts.get("than", name)
        if measured not in rows:
            raise UserError(f"{path}: machines.{name} has no measured rows; let `than` name a machine that has some")
        of = tuple(rows[measured])
        factors = facts.get("slower", 1.0), of, facts.get("float32", 1.0)
        machines[name] = Machine(name, facts["source"], facts.get("than"), *factors)
    return machines


def find(machines: dict[str, Machine], name: str) -> Machine:
    """A machine by name; raises UserError with the known names if there is none."""
    if name not in machines:
        known = ", ".join(machines)
        raise UserError(f"config/throughput.yaml has no machine {name!r}; choose one of {known}, or add a row")
    return machines[name]


def rows_of(results: Path) -> list[dict]:
    """One row per finished run in `results` (a scale's folder, or results/recorded/<scale>); UserError if none exist.

    Seconds are those of the whole training, including validation, divided by its passes. On a CPU they are CPU time per
    thread if that is known, which other work on the machine hardly changes. A run that
    copied another's files has no row, and neither has a recorded one that shared its job with others (`together`).
    """
    paths = sorted(results.glob("runs/*/*/*/metrics.json"))
    if not paths:
        raise UserError(f"{results} holds no evaluated run; run the workflow at that scale first")
    trained = ((path, read_json(path)["training"]) for path in paths)
    return [_row(path, run) for path, run in trained if not is_copy(run) and run.get("together", 1) == 1]


def _row(path: Path, run: dict) -> dict:
    training = training_of(run["settings"])
    on_cpu = run["device"].startswith("CPU")
    seconds = run["seconds"]
    if on_cpu and run.get("cpu_seconds"):
        seconds = run["cpu_seconds"] / run["settings"]["training"]["threads"]
    precision = precision_of(run)
    return {
        "machine": CPU if on_cpu else run["device"],
        "what": f"{run['experiment']}/{run['method']}/seed{run['seed']}",
        "shape": vars(size_of(run["settings"])),
        "tokens": training.tokens,
        "seconds": round(seconds / (training.steps * training.passes), 5),
        "gib": round(run["peak_memory_gib"], 3),
        **({} if precision == NOT_RECORDED else {"precision": precision}),
        "where": path.parents[4].as_posix(),
    }
