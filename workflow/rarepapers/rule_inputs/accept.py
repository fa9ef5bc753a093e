"""The command `accept`: marks finished results from another machine, or in a fresh clone, as up to date.

Snakemake remakes a file if one of its inputs is newer, or if its record of parameters, such as code digests, differs.
After a copy or a clone all files have the time of that day, and a record is of files that were here before. Each result
records what it was made from, so valid ones can be recognised: they get the current time and lose Snakemake's record,
the others get a time in 1970.
"""

import argparse
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rarepapers.core.config_files import canonical_json
from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json
from rarepapers.experiments import config_options
from rarepapers.experiments.run_table import Run, RunTable, load
from rarepapers.experiments.trained_runs import code_that_measures, code_that_trains
from rarepapers.rule_inputs import evaluate, train
from rarepapers.rule_inputs.code import command_code
from rarepapers.rule_inputs.report import gpt2_measured
from rarepapers.training.finished_files import FILES, RECORD, WEIGHTS

EVALUATED = ("arrays.npz", "hypotheses.json", "metrics.json")
LINKS = (".links", ".json")
# Time of files to be remade, older than any input; Snakemake would take 0 for no time.
LONG_AGO = (1, 1)
# Files per call of `snakemake --cleanup-metadata`, since the length of a command is limited.
AT_ONCE = 2000


@dataclass
class Accepted:
    """Runs whose training or evaluation was accepted, missing runs, and the reason for each refusal, by name."""

    trained: list[Run] = field(default_factory=list)
    evaluated: list[Run] = field(default_factory=list)
    missing: list[Run] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    config_options.add_arguments(parser)


def main(arguments: argparse.Namespace) -> None:
    """Accept finished results, and print which ones were not accepted and why."""
    table = load(config_options.config_of(arguments), arguments.root, arguments.project)
    accepted = accept(table)
    for name, reason in accepted.refused.items():
        print(f"not accepted: {name}: {reason}")
    print(
        f"accepted {len(accepted.trained)} training(s) and {len(accepted.evaluated)} evaluation(s) of "
        f"{len(table.runs)} runs in {table.results}; {len(accepted.missing)} are missing"
    )


def accept(table: RunTable) -> Accepted:
    """Mark the files of all finished runs that the config and code of `table` would reproduce as up to date.

    Prepared data must exist too, with the checksums that the runs were made from. Raises UserError for a table that
    only renders finished runs.
    """
    if table.render_only:
        raise UserError(
            f"{table.results} is only rendered, with nothing to accept; leave out recorded=true and finished=true"
        )
    accepted, fresh = Accepted(), set()
    valid: list[Path] = []
    for run in table.runs.values():
        folder = table.root / table.folder(run)
        if not (folder / RECORD).exists():
            accepted.missing.append(run)
            continue
        record = read_json(folder / RECORD)
        reason = other_training(table, run, record, folder)
        if reason:
            accepted.refused[run.name] = reason
            touch(folder, FILES, LONG_AGO)
            continue
        # Shared files first: a file must not be older than its inputs.
        for path in read_files(table, run):
            if path not in fresh:
                other = is_of_other_code(path)
                os.utime(path, LONG_AGO if other else None)
                fresh.add(path)
                valid += [] if other else [path]
        valid += touch(folder, FILES)
        accepted.trained.append(run)
        reason = other_evaluation(table, run, record, folder)
        if reason:
            accepted.refused[f"the evaluation of {run.name}"] = reason
            touch(folder, EVALUATED, LONG_AGO)
        elif (folder / "metrics.json").exists():
            valid += touch(folder, EVALUATED)
            accepted.evaluated.append(run)
    drop_records(table.root, valid)
    for path in map(table.root.joinpath, gpt2_measured(table)):
        if path.exists() and read_json(path).get("sources") != command_code("measure-gpt2"):
            # Without a checkpoint it has no input, so no time could mark it as outdated.
            path.unlink()
            accepted.refused[f"gpt2/{path.name}, removed"] = "the code that measures has changed since"
    return accepted


def other_training(table: RunTable, run: Run, record: dict, folder: Path) -> str:
    """How a finished training differs from the one that `table` would make; empty if it does not."""
    measured = not table.config["keep_weights"] and (folder / "metrics.json").exists()
    if any(not (folder / name).exists() for name in FILES if not (measured and name in WEIGHTS)):
        return "some of its files are missing"
    if record["hash"] != run.hash:
        return f"its settings differ ({record['hash']}, not {run.hash})"
    if record["sources"] != code_that_trains(run):
        return "the code that trains has changed since"
    manifest = train.manifest(table, run)
    if not (table.root / manifest).exists():
        return f"its data are not here; copy or make {manifest} first"
    if read_json(table.root / manifest)["sha256"] != record["data"]:
        return f"it was trained on other data than {manifest} describes"
    for path in train.outside_counts(table, run):
        if not (table.root / path).exists():
            return f"its counts are not here; copy or make {path} first"
        counts = np.load(table.root / path, allow_pickle=False)
        if hashlib.sha256(counts.tobytes()).hexdigest() != record["counts"]:
            return f"its bias started from other counts than those of {path}"
    return ""


def other_evaluation(table: RunTable, run: Run, record: dict, folder: Path) -> str:
    """How an evaluation differs from the one that `table` would make; empty if it does not, or if there is none."""
    if not (folder / "metrics.json").exists():
        return ""
    if any(not (folder / name).exists() for name in EVALUATED):
        return "some of its files are missing"
    metrics = read_json(folder / "metrics.json")
    made = metrics.get("evaluation", {})
    if metrics["training"] != record:
        return "it belongs to another training"
    if canonical_json(made.get("settings", {})) != table.evaluation(run.experiment):
        return "its settings differ"
    if made["sources"] != code_that_measures(run):
        return "the code that measures has changed since"
    for links in evaluate.links(table, run):
        aligned = (table.root / links).with_suffix(".json")
        if not aligned.exists():
            return f"the links of its words are not here; copy or make {links} first"
        if is_of_other_code(aligned):
            return "the code that aligns words has changed since"
    return ""


def read_files(table: RunTable, run: Run) -> list[Path]:
    """The prepared files that a run's training and evaluation read."""
    data = (table.root / train.manifest(table, run)).parent
    links = [(table.root / path).with_suffix(suffix) for path in evaluate.links(table, run) for suffix in LINKS]
    counts = [table.root / path for path in train.outside_counts(table, run)]
    # Counts of shards come first, because those of the text are made from them.
    shards = [path for whole in counts for path in sorted(whole.with_suffix("").glob("*.npy"))]
    return [*sorted(data.iterdir()), *shards, *counts, *(path for path in links if path.exists())]


def is_of_other_code(path: Path) -> bool:
    """Whether a prepared file is a word alignment (links or record) made by other code."""
    if path.suffix not in LINKS or path.parents[1].name != "alignments":
        return False
    return read_json(path.with_suffix(".json")).get("sources") != command_code("align")


def touch(folder: Path, names: tuple[str, ...], times: tuple[int, int] | None = None) -> list[Path]:
    """Give existing files `times`, by default the current time, in the order of `names`; returns these files."""
    paths = [path for name in names if (path := folder / name).exists()]
    for path in paths:
        os.utime(path, times)
    return paths


def drop_records(root: Path, paths: Iterable[Path]) -> None:
    """Delete Snakemake's records of these files: without one, Snakemake compares only times."""
    if not (root / ".snakemake").exists():
        return
    names = [str(path.relative_to(root)) for path in paths]
    # An empty workflow is enough, and starts faster.
    command = [sys.executable, "-m", "snakemake", "--snakefile", os.devnull, "--workflow-profile", "none"]
    command += ["--directory", str(root), "--cleanup-metadata"]
    for start in range(0, len(names), AT_ONCE):
        done = subprocess.run([*command, *names[start : start + AT_ONCE]], capture_output=True, text=True)
        # Snakemake also fails if a file has no record, after it has deleted the others.
        if done.returncode and "metadata was not present" not in done.stderr:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise UserError(f"Snakemake's records of the accepted files could not be deleted: {reason}")
