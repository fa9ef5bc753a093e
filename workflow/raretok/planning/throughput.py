"""Training time and memory by machine, extrapolated from the measured rows of config/throughput.yaml.

A model is compared with the measured one of the same machine whose number of operations per target, F, is nearest (by
ratio). For passes (forward, backward, step) over T targets, with N parameters, L layers and width d; ' marks the
measured row:

    seconds = seconds' (F T) / (F' T')
    GiB     = 16 N / 2^30 + (GiB' - 16 N' / 2^30) (T L d) / (T' L' d')

16 bytes per parameter hold weights, gradients and two moments in float32.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NotRequired, Required, TypedDict

from raretok.core.config_files import read_config
from raretok.core.errors import UserError
from raretok.core.files import read_json
from raretok.core.type_check import AboveZero, Limit, Positive, keys
from raretok.experiments.run_code import is_copy
from raretok.experiments.run_size import Size, size_of, training_of

GIB_PER_PARAMETER = 16 / 2**30
CPU = "cpu"


@keys(slower=["than"], than=["slower"])
class MachineFacts(TypedDict, total=False):
    """A machine with measured rows, or one that takes longer than a measured one by a known factor."""

    # How many times as long it takes.
    slower: AboveZero
    # The machine that was measured instead.
    than: str
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


@dataclass(frozen=True)
class Machine:
    """A machine with its measured rows, or with those of the machine `than`, times `slower`."""

    name: str
    source: str
    than: str | None
    slower: float
    rows: tuple[Row, ...]

    def seconds(self, size: Size, tokens: int) -> float:
        """Seconds of one pass of a model over `tokens` targets."""
        row = nearest(self.rows, size)
        return self.slower * row.seconds * size.flops * tokens / (row.size.flops * row.tokens)

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
            Row(Size(**row["shape"]), row["tokens"], row["seconds"], row.get("gib"))
        )
    machines = {}
    for name, facts in known.items():
        measured = facts.get("than", name)
        if measured not in rows:
            raise UserError(f"{path}: machines.{name} has no measured rows; let `than` name a machine that has some")
        of = tuple(rows[measured])
        machines[name] = Machine(name, facts["source"], facts.get("than"), facts.get("slower", 1.0), of)
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
    thread if that is known, which other work on the machine hardly changes. Processes share the rows of a pass, so time
    is multiplied by their number, and the memory of a whole pass is unknown. A run that copied another's files has no
    row, and neither has one trained together with others, whose passes are those of a larger model.
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
    processes = run.get("processes", 1)  # missing in older records
    memory = {"gib": round(run["peak_memory_gib"], 3)} if processes == 1 else {}
    return {
        "machine": CPU if on_cpu else run["device"],
        "what": f"{run['experiment']}/{run['method']}/seed{run['seed']}",
        "shape": vars(size_of(run["settings"])),
        "tokens": training.tokens,
        "seconds": round(processes * seconds / (training.steps * training.passes), 5),
        **memory,
        "where": path.parents[4].as_posix(),
    }
