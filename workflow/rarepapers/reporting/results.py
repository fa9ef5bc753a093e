"""Results of runs and printed numbers of papers, read without torch."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from rarepapers.core.files import read_arrays, read_json
from rarepapers.reporting.csv_rows import check_numbers, read_table
from rarepapers.reporting.definition import Method
from rarepapers.reporting.printed_places import GPT2_COLUMNS
from rarepapers.reporting.statistics.over_seeds import deviation_of, mean_of, not_finite

COLUMNS = ["paper", "experiment", "method", "seed", "metric", "group", "split", "value", "n", "signature", "run"]
KEY = ["experiment", "method", "metric", "group", "split"]
# A best temperature is meaningless if the perplexity there is infinite.
NEEDS_FINITE = {"best_temperature": "best_perplexity"}

# Perplexities of a diverged model: NaN counts as infinity.
WORST = {"fitted_perplexity": math.inf}

# What metrics.json and metrics.csv write for numbers that JSON cannot hold.
NOT_FINITE = ("inf", "-inf", "nan")
# Columns with numbers in the files of a paper's published numbers.
NUMBERS = {"numbers": ("value", "reference"), "claims": ("null", "margin"), "neighbours": ("rank",)}


class Printed(NamedTuple):
    """A printed number: its text, its value, and our note.

    reference: the value in the authors' public notebook if the paper has a misprint (deviations, S7 and S8).
    """

    text: str
    value: float
    note: str
    reference: float | None = None

    @property
    def meant(self) -> float:
        """The value to compare with: the reference for a misprint, else the printed value."""
        return self.value if self.reference is None else self.reference


class Spread(NamedTuple):
    """Mean over seeds, sample standard deviation, number of seeds, and the seeds that are not finite, in words.

    The deviation is None for one seed, and if one is not finite.
    """

    mean: float
    spread: float | None
    seeds: int
    not_finite: str = ""


@dataclass(frozen=True)
class Results:
    """The results folder of one scale: collected metrics, arrays and GPT-2 measurements."""

    folder: Path
    metrics: pd.DataFrame
    values: dict[tuple, dict[int, float]]  # (experiment, method, metric, group, split): {seed: value}
    printed: dict[tuple[str, str, str, str], "Printed"] = field(default_factory=dict)  # of a figure; `printed_numbers`

    def per_seed(
        self, method: Method, metric: str, group: str = "", checkpoint: str = "best", split: str | None = None
    ) -> dict[int, float]:
        """Values by seed, empty if nothing was measured.

        Without `split`, the first one with this metric at `checkpoint` is used: `test@best` for a perplexity
        (`valid@best` for a paper without test text), `weights@best` for an isotropy.
        """
        names = [split] if split else [f"{part}@{checkpoint}" for part in ("test", "valid", "weights")]
        for name in names:
            found = self.values.get((method.experiment, method.name, metric, group, name), {})
            if metric in NEEDS_FINITE:
                needed = self.per_seed(method, NEEDS_FINITE[metric], group, checkpoint, split)
                found = {
                    seed: value if math.isfinite(needed.get(seed, math.nan)) else math.nan
                    for seed, value in found.items()
                }
            if found:
                return found
        return {}

    def of_seeds(self, seeds: Mapping[str, Collection[int]]) -> "Results":
        """The results of these seeds of each method; all seeds of methods that are not named."""
        kept = [
            method not in seeds or seed in seeds[method]
            for method, seed in zip(self.metrics["method"], self.metrics["seed"], strict=True)
        ]
        values = {
            key: {seed: value for seed, value in of.items() if key[1] not in seeds or seed in seeds[key[1]]}
            for key, of in self.values.items()
        }
        return replace(self, metrics=self.metrics[kept], values=values)

    @cached_property
    def runs(self) -> set[tuple[str, str, int]]:
        """(experiment, method, seed) of every run with metrics; a folder can also hold runs of earlier settings."""
        return set(zip(*(self.metrics[name] for name in ("experiment", "method", "seed")), strict=True))

    def seeds_of(self, method: Method) -> list[int]:
        """The seeds of a method that have metrics."""
        return [seed for seed in method.seeds if (method.experiment, method.name, seed) in self.runs]

    def seeds_with_arrays(self, method: Method) -> list[tuple[int, dict[str, np.ndarray]]]:
        """(seed, arrays) of every evaluated seed, sorted by seed."""
        paths = ((seed, method.run_folder(self.folder, seed) / "arrays.npz") for seed in self.seeds_of(method))
        return [(seed, read_arrays(path)) for seed, path in paths if path.exists()]

    def record_of(self, method: Method, seed: int) -> Path:
        """Path of the file with a run's numbers and training record."""
        return method.run_folder(self.folder, seed) / "metrics.json"

    def trainings(self, method: Method) -> dict[int, dict]:
        """Training records of a method (settings, `derived`, parameters, seconds), by seed."""
        paths = {seed: self.record_of(method, seed) for seed in self.seeds_of(method)}
        return {seed: _training_in(path) for seed, path in paths.items() if path.exists()}

    def training(self, method: Method) -> dict | None:
        """The training record of the method's first finished seed."""
        return next(iter(self.trainings(method).values()), None)

    def gpt2(self, repository: str) -> dict | None:
        """The measurement of a GPT-2 checkpoint (stop_jostling, table 3), or None."""
        path = self.folder / "gpt2" / f"{repository}.json"
        return read_json(path) if path.exists() else None


@cache
def _training_in(path: Path) -> dict:
    """The training record in a metrics.json; many items of a page show the same runs."""
    return read_json(path)["training"]


def read_results(folder: Path | str) -> Results:
    """Read `metrics.csv` of a scale's results folder; raises UserError for a number that cannot be read."""
    path = Path(folder) / "metrics.csv"
    table = read_table(path)
    check_numbers(table, path, ("seed", "n"))
    check_numbers(table, path, ("value",), NOT_FINITE)
    return index_results(Path(folder), table)


def index_results(folder: Path, metrics: pd.DataFrame) -> Results:
    """The Results of `folder` with the numbers `metrics` (COLUMNS).

    A NaN of no items (n is 0) counts as not measured; another one is undefined, or the worst value of a metric in
    `WORST`.
    """
    metrics = metrics.astype({"seed": int, "value": float})
    values = defaultdict(dict)
    keys = zip(*(metrics[name] for name in KEY), strict=True)
    for key, seed, value, n in zip(keys, *(metrics[name] for name in ("seed", "value", "n")), strict=True):
        metric = key[KEY.index("metric")]
        if math.isnan(value) and not int(n):
            continue
        values[key][seed] = WORST.get(metric, value) if math.isnan(value) else value
    return Results(folder, metrics, dict(values))


def summarise(values: dict[int, float] | float | None) -> Spread | None:
    """Mean and sample standard deviation over seeds; a number without seeds has 0 of them. None without values."""
    if isinstance(values, float):
        return Spread(values, None, 0)
    if not values:
        return None
    numbers = values.values()
    return Spread(mean_of(numbers), deviation_of(numbers), len(values), not_finite(values))


def is_initialised(column: str) -> bool:
    """Whether a column of table 3 describes random initialisations, which have seeds."""
    return GPT2_COLUMNS.get(column, ("", ""))[0] == "random_init"


def gpt2_values(measured: dict | None, column: str) -> dict[int, float] | float | None:
    """The value of a GPT-2 measurement in a column of table 3; None if it was not measured.

    Random initialisations are given by seed; the width and pre-trained weights have no seed.
    """
    part, key = GPT2_COLUMNS[column]
    found = measured[part] if measured and part else measured
    if found is None:
        return None
    if is_initialised(column):
        return {entry["seed"]: float(entry[key]) for entry in found}
    return float(found[key])


def read_published(folder: Path | str, name: str, paper: str) -> pd.DataFrame:
    """The rows of `<folder>/<paper>/<name>.csv`, all as text, with a first column `paper`.

    Raises UserError for a number that cannot be read. A printed perplexity can be infinite.
    """
    path = Path(folder) / paper / f"{name}.csv"
    table = read_table(path)
    check_numbers(table, path, [column for column in NUMBERS.get(name, ()) if column in table], ("inf",))
    table.insert(0, "paper", paper)
    return table


def printed_numbers(folder: Path | str, paper: str) -> dict[tuple[str, str, str, str], Printed]:
    """Printed numbers of a paper by (item, row, column, group)."""
    numbers = read_published(folder, "numbers", paper).to_dict("records")
    return {
        (row["item"], row["row"], row["column"], row["group"]): Printed(
            row["value"],
            float(row["value"]),
            row["note"],
            float(row["reference"]) if row.get("reference") else None,
        )
        for row in numbers
    }
