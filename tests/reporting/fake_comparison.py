"""Synthetic results of the comparison of all methods, with known answers.

Every candidate of a method has a true effect: the change, in per cent, of the perplexity of frequent and rare tokens
against MLE, and its perplexity of the validation text. A seed changes all
methods alike, and each a little.
"""

from pathlib import Path

import numpy as np
import yaml
from fake_results import ROOT, write_run

from rarepapers.experiments.run_table import RunTable, load
from rarepapers.reporting.collect import read_item
from rarepapers.reporting.definition import Definition, definition_of
from rarepapers.rule_inputs import report

CONFIG = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
GROUPS = {
    "cross_character": ("HR", None, "LR"),
    "cross_bpe": ("freq", "med", "rare"),
    "cross_translation": ("freq", "med", "rare"),
}
EXPERIMENTS = list(GROUPS)


def workflow(scale: str = "small_gpu", **changes) -> RunTable:
    """The real config of the comparison."""
    return load(CONFIG | {"scale": scale, "papers": ["cross"]} | changes, ROOT)


def definition(table: RunTable) -> Definition:
    """The definition of the comparison."""
    return definition_of(report.definition(table, "cross"))


def write(folder: Path, table: RunTable, truth, noise: float = 0.001, left_out=lambda run: False) -> None:
    """Write metrics.json of the runs of `table` below `folder`.

    truth: (experiment, method) to (change of frequent, of rare, perplexity of the validation text). left_out: whether a
    run is not there.
    """
    for run in table.runs.values():
        if left_out(run):
            continue
        frequent, rare, criterion = truth(run.experiment, run.method)
        generator = np.random.default_rng([run.seed, *run.hash.encode()])
        shared = np.exp(0.05 * np.random.default_rng(run.seed).normal())
        metrics = list(_metrics(run.experiment, frequent, rare, criterion, shared, noise, generator))
        about = {key: getattr(run, key) for key in ("paper", "experiment", "method", "seed", "hash", "settings")}
        seconds = 60.0 if run.method.startswith("mle") else 75.0
        write_run(folder, about, metrics, {"nothing": np.zeros(1)}, seconds=seconds, steps=100, tokens=1000)


def _metrics(experiment: str, frequent: float, rare: float, criterion: float, shared: float, noise: float, generator):
    first, medium, last = GROUPS[experiment]

    def row(metric, group, split, value):
        value = float(value * np.exp(noise * generator.normal()))
        return {"metric": metric, "group": group, "split": split, "value": value, "n": 1000, "signature": "made:up"}

    yield row("fitted_perplexity", "total", "valid@best", criterion)
    yield row("fitted_perplexity", first, "test@best", 20 * shared * (1 + frequent / 100))
    yield row("fitted_perplexity", last, "test@best", 900 * shared * (1 + rare / 100))
    if medium:
        yield row("fitted_perplexity", medium, "test@best", 200 * shared * (1 + (frequent + rare) / 200))
    yield row("fitted_perplexity", "total", "test@best", 40 * shared)
    group = "total" if medium else "LR"
    yield row("uniq", group, "test@best", 400)
    yield row("isotropy_sign_free", group, "weights@best", 0.7)
    if experiment == "cross_translation":
        yield row("bleu", "", "test@best", 30)


def results_of(folder: Path, made: Definition):
    """The results as the job of the table reads them."""
    return read_item(folder, made, "table1")
