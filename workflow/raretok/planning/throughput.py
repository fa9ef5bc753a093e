"""Throughput and memory of machines: a model with few constants, fitted to config/throughput.yaml.

One pass (forward, backward, step) over T targets, with a model of N parameters, L layers, width d, vocabulary size V:

    seconds = max(a F T + b T V, c L)      F: operations per target
    GiB     = g + (16 N + T (p L d + q V)) / 2^30

a is the cost of arithmetic, b that of logit traffic (rows of a machine with different vocabulary sizes and layers
separate the two), c that of kernel launches, on GPUs only. 16 bytes per parameter hold weights, gradients and two
moments in float32. g is the memory of the process itself, 0 on a GPU, where only torch's allocations count.
"""

import statistics
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Required, TypedDict

import numpy as np

from raretok.core.config_files import read_config
from raretok.core.errors import UserError
from raretok.core.type_check import AboveZero, Limit, NotNegative, Positive, keys

BYTES_PER_PARAMETER = 16
# Activations take twice as much memory in float32 as under bfloat16 autocast.
FLOAT32 = 2
CPU = "cpu"


SIZES = dict.fromkeys(("width", "types", "parameters"), Positive)


@keys(scaled_from=["flops", "bandwidth"])
class MachineFacts(TypedDict, total=False):
    """A machine; one that is `scaled_from` another one needs the peaks of its data sheet, and so does that."""

    # Operations a second.
    flops: AboveZero
    # Bytes a second.
    bandwidth: AboveZero
    memory_gib: AboveZero
    # The machine that was measured in its place.
    scaled_from: str
    source: Required[str]


class MeasuredRow(TypedDict):
    """A training step, or a whole training, that somebody timed."""

    machine: str
    what: str
    # Of the model; types: of the vocabulary; flops: operations a target.
    shape: TypedDict("Shape", {"layers": AboveZero, "flops": AboveZero, **SIZES})
    # Targets of a pass, its seconds and peak memory.
    tokens: Positive
    seconds: AboveZero
    gib: AboveZero
    # Whether constants are fitted to it; others are compared with it alone.
    fit: bool
    where: str
    date: str | None


class Measurements(TypedDict):
    machines: dict[str, MachineFacts]
    # What a pass through the layers of a small model waits for on a GPU.
    launch: TypedDict("Launch", {"seconds_per_layer": NotNegative, "source": str})
    measured: Annotated[list[MeasuredRow], Limit("minItems", 1)]


@dataclass(frozen=True)
class Row:
    """One measurement: `seconds` and peak `gib` of a pass over `tokens` targets. flops: operations per target."""

    machine: str
    what: str
    layers: float
    width: int
    types: int
    parameters: int
    flops: float
    tokens: int
    seconds: float
    gib: float
    fit: bool
    where: str
    date: str | None

    @property
    def shape(self) -> tuple:
        return self.layers, self.width, self.types, self.tokens


@dataclass(frozen=True)
class Machine:
    """The constants of a machine; `scaled_from`: the machine that was measured instead, if any."""

    name: str
    source: str
    memory_gib: float | None
    scaled_from: str | None
    seconds_per_flop: float
    seconds_per_logit: float
    seconds_per_layer: float
    base_gib: float
    bytes_per_activation: float
    bytes_per_logit: float

    def seconds(self, size, tokens: int, launching: bool = True) -> float:
        """Seconds of one pass of a model of `size` (a `Size` or `Row`); launching: False leaves out kernel launches."""
        busy = tokens * (size.flops * self.seconds_per_flop + size.types * self.seconds_per_logit)
        return max(busy, size.layers * self.seconds_per_layer) if launching else busy

    def gib(self, size, tokens: int) -> float:
        """Peak memory of training a model of `size` with passes over `tokens` targets."""
        per_target = size.layers * size.width * self.bytes_per_activation + size.types * self.bytes_per_logit
        return self.base_gib + (BYTES_PER_PARAMETER * size.parameters + tokens * per_target) / 2**30


@dataclass(frozen=True)
class Throughput:
    """Machines by name, and the rows that they are fitted to or compared with."""

    machines: dict[str, Machine]
    rows: list[Row]
    launch_source: str

    def machine(self, name: str) -> Machine:
        """A machine by name; raises UserError with the known names if there is none."""
        if name not in self.machines:
            known = ", ".join(self.machines)
            raise UserError(f"config/throughput.yaml knows no machine {name!r}; it can be {known}, or add a row")
        return self.machines[name]


def load(root: Path) -> Throughput:
    """Read and fit `root`/config/throughput.yaml; UserError names file and key of a mistake."""
    path = root / "config" / "throughput.yaml"
    content = read_config(path, Measurements)
    rows = [
        Row(**{key: value for key, value in row.items() if key != "shape"}, **row["shape"])
        for row in content["measured"]
    ]
    names = content["machines"]
    measured = dict.fromkeys(row.machine for row in rows if row.fit)
    fitted = {}
    # GPUs first, since a CPU's activation memory is derived from a GPU's.
    for name in sorted(measured, key=lambda name: name == CPU):
        if name not in names:
            raise UserError(f"{path}: measured names the machine {name!r}, which machines lacks")
        fitted[name] = _fit(name, names[name], rows, content["launch"]["seconds_per_layer"], fitted)
    machines = {name: fitted.get(name) or _scaled(name, entry, names, fitted, path) for name, entry in names.items()}
    return Throughput(machines, rows, content["launch"]["source"])


def _fit(name: str, entry: dict, rows: list[Row], per_layer: float, known: dict[str, Machine]) -> Machine:
    """Least squares of relative errors; rows of one shape count by their median, to limit the effect of outliers."""
    shapes: dict[tuple, list[Row]] = {}
    for row in rows:
        if row.fit and row.machine == name:
            shapes.setdefault(row.shape, []).append(row)
    groups = list(shapes.values())
    seconds = np.array([statistics.median(row.seconds for row in group) for group in groups])
    gib = np.array([statistics.median(row.gib for row in group) for group in groups])
    work = np.array([[group[0].tokens * group[0].flops, group[0].tokens * group[0].types] for group in groups])
    per_flop, per_logit = _positive(work, seconds)
    held = np.array([group[0].parameters * BYTES_PER_PARAMETER / 2**30 for group in groups])
    extent = np.array([[row.tokens * row.layers * row.width, row.tokens * row.types] for row, *_ in groups]) / 2**30
    if name == CPU and known:
        gpu = next(iter(known.values()))
        activation, logit = FLOAT32 * gpu.bytes_per_activation, FLOAT32 * gpu.bytes_per_logit
        base = float(np.median(gib - held - extent @ [activation, logit]))
    else:
        activation, logit = _positive(extent, gib - held)
        base = 0.0
    return Machine(
        name=name,
        source=entry["source"],
        memory_gib=entry.get("memory_gib"),
        scaled_from=None,
        seconds_per_flop=per_flop,
        seconds_per_logit=per_logit,
        seconds_per_layer=0.0 if name == CPU else per_layer,
        base_gib=base,
        bytes_per_activation=activation,
        bytes_per_logit=logit,
    )


def _positive(columns: np.ndarray, target: np.ndarray) -> tuple[float, float]:
    """Two non-negative factors whose sum of columns fits `target` with the smallest relative errors."""
    scaled = columns / target[:, None]
    ones = np.ones(len(target))
    both, _, rank, _ = np.linalg.lstsq(scaled, ones, rcond=None)
    if rank == 2 and (both >= 0).all():
        return float(both[0]), float(both[1])
    return float(scaled[:, 0] @ ones / (scaled[:, 0] @ scaled[:, 0])), 0.0


def _scaled(name: str, entry: dict, names: dict, fitted: dict[str, Machine], path: Path) -> Machine:
    """Constants of an unmeasured machine: another one's, scaled by the peaks of their data sheets."""
    other = entry.get("scaled_from")
    if other not in fitted:
        raise UserError(f"{path}: machines.{name} has no measured rows; name a machine that has in scaled_from")
    of, base = fitted[other], names[other]
    return replace(
        of,
        name=name,
        source=entry["source"],
        memory_gib=entry.get("memory_gib"),
        scaled_from=other,
        seconds_per_flop=of.seconds_per_flop * base["flops"] / entry["flops"],
        seconds_per_logit=of.seconds_per_logit * base["bandwidth"] / entry["bandwidth"],
    )
