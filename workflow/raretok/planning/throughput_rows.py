"""Finished runs as rows of config/throughput.yaml, and the errors of the model on all rows."""

from pathlib import Path

from raretok.core.errors import UserError
from raretok.core.files import read_json
from raretok.experiments.run_size import size_of, training_of
from raretok.planning.throughput import CPU, Row, Throughput


def rows_of(results: Path) -> list[dict]:
    """One row per finished run in `results` (a scale's folder, or results/recorded/<scale>); UserError if none exist.

    Seconds are those of the whole training, including validation, divided by its passes.
    """
    paths = sorted(results.glob("runs/*/*/*/metrics.json"))
    if not paths:
        raise UserError(f"{results} holds no evaluated run; run the workflow at that scale first")
    return [_row(path, read_json(path)["training"]) for path in paths]


def _row(path: Path, run: dict) -> dict:
    size, training = size_of(run["settings"]), training_of(run["settings"])
    names = ("layers", "width", "types", "parameters", "flops")
    return {
        "machine": CPU if run["device"].startswith("CPU") else run["device"],
        "what": f"{run['experiment']}/{run['method']}/seed{run['seed']}",
        "shape": {name: getattr(size, name) for name in names},
        "tokens": training.tokens,
        "seconds": round(run["seconds"] / (training.steps * training.passes), 5),
        "gib": round(run["peak_memory_gib"], 3),
        "fit": True,
        "where": path.parents[4].as_posix() if "runs" in path.parts else str(path),
        "date": None,
    }


def in_one_line(row: dict) -> str:
    """A row as one line of YAML."""
    shape = ", ".join(
        f"{key}: {value:g}" if key == "flops" else f"{key}: {value}" for key, value in row["shape"].items()
    )
    rest = {key: value for key, value in row.items() if key not in ("machine", "what", "shape")}
    words = {True: "true", False: "false", None: "null"}
    facts = ", ".join(f"{key}: {words.get(value, value)}" for key, value in rest.items())
    return f"  - {{machine: {row['machine']}, what: {row['what']}, shape: {{{shape}}}, {facts}}}"


def errors(throughput: Throughput) -> list[tuple[Row, float, float]]:
    """Each row with the relative errors of the model's seconds and memory: 0.1 is 10% too high."""
    held = []
    for row in throughput.rows:
        machine = throughput.machine(row.machine)
        seconds, gib = machine.seconds(row, row.tokens, launching=False), machine.gib(row, row.tokens)
        held.append((row, seconds / row.seconds - 1, gib / row.gib - 1))
    return held
