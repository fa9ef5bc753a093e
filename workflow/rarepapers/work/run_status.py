"""Status of a run: trained, evaluated, recorded."""

import json
import shutil
from pathlib import Path

from rarepapers.core.files import CHECKPOINT, METADATA, read_json, read_tensor_header
from rarepapers.experiments.run_table import Run, RunTable
from rarepapers.experiments.trained_runs import code_that_trains, is_trained, same_training
from rarepapers.rule_inputs import train
from rarepapers.rule_inputs.accept import other_evaluation
from rarepapers.training.finished_files import KEPT, RECORD, WEIGHTS, has_files, holds


def done_already(table: RunTable, run: Run, recorded: bool) -> bool:
    """Whether a run is trained and evaluated. recorded: a recorded run with the same settings counts too."""
    return (recorded and is_recorded(table, run)) or (is_trained_here(table, run) and is_evaluated(table, run))


def is_recorded(table: RunTable, run: Run) -> bool:
    """Whether results/recorded holds a run with the same settings."""
    return table.is_measured_in(run, table.root / "results" / "recorded" / table.scale / "runs" / run.name)


def is_trained_here(table: RunTable, run: Run) -> bool:
    """Whether this code trained a run on the prepared data, or on any data if none are prepared here."""
    return holds(table.root / table.folder(run), identity_of(table, run))


def identity_of(table: RunTable, run: Run) -> dict[str, str]:
    """Hashes that identify a run's training, for `holds`; without that of the data if these are not prepared here."""
    manifest = table.root / train.manifest(table, run)
    data = {"data": read_json(manifest)["sha256"]} if manifest.exists() else {}
    return {"run": run.hash, "sources": code_that_trains(run)} | data


def log_of(table: RunTable, run: Run, stage: str) -> Path:
    """The log of a run's job, the same as that of the rule with the stage's name."""
    return table.root / table.logs / stage / f"{run.name}.txt"


def log_together(table: RunTable, group: str) -> Path:
    """The log of the job of a group of runs, of which `group` is the hash; the same as that of its rule."""
    return table.root / table.logs / "train" / "together" / f"{group}.txt"


def last_line(log: Path) -> str:
    """The last line of a log; empty if there is none."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []
    return next((line for line in reversed(lines) if line.strip()), "")


def is_evaluated(table: RunTable, run: Run) -> bool:
    """Whether a trained run has metrics of this training, these settings and this code."""
    return not evaluation_fault(table, run)


def evaluation_fault(table: RunTable, run: Run) -> str:
    """Why a trained run does not count as evaluated; empty if it does."""
    folder = table.root / table.folder(run)
    if not (folder / "metrics.json").exists():
        return "there is no metrics.json"
    return other_evaluation(table, run, read_json(folder / RECORD), folder)


def must_train(table: RunTable, run: Run) -> bool:
    """Whether a run must be trained, or its training completed, before it can be evaluated.

    Also if it must be measured again but its weights were deleted after measuring (`keep_weights`).
    """
    if not is_trained_here(table, run):
        return True
    folder = table.root / table.folder(run)
    return any(not (folder / name).exists() for name in WEIGHTS) and not is_evaluated(table, run)


def copied_record(table: RunTable, run: Run) -> list[str]:
    """The record of the training whose files a run copies; empty if the run is trained itself.

    That training must be by the current code on the prepared data, and its weights must not have been deleted after
    measuring.
    """
    same = same_training(table, run)
    if same is None or not (is_trained(table, same, itself=True) and is_trained_here(table, same)):
        return []
    record = f"{table.folder(same)}/{RECORD}"
    return [record] if has_files(table.root / record) else []


def trained_share(table: RunTable, run: Run) -> float:
    """The share of a run's training that is done, from 0 to 1, by the step of its checkpoint; only for estimates.

    Also 1 if its files are copied from another run, or from those kept with its state, and if only the final validation
    and the final files are missing; `must_train` says whether the run is complete.
    """
    has_kept_files = holds(table.root / train.state(table, run) / KEPT, identity_of(table, run))
    if not must_train(table, run) or copied_record(table, run) or has_kept_files:
        return 1.0
    progress = saved_progress(table, run)
    return progress["step"] / run.settings["training"]["steps"] if progress else 0.0


def drop_weights(table: RunTable, run: Run) -> None:
    """Delete the weights of a measured run, as Snakemake does if the config says `keep_weights: false`."""
    for name in WEIGHTS:
        (table.root / table.folder(run) / name).unlink(missing_ok=True)
    shutil.rmtree(table.root / train.state(table, run) / KEPT, ignore_errors=True)


def saved_progress(table: RunTable, run: Run) -> dict | None:
    """The progress (`training.progress.Progress`) of a run's saved state, or None; a state of other code has none."""
    try:
        facts = facts_of(table.root / train.state(table, run) / CHECKPOINT)
        return facts["progress"] if facts["sources"] == code_that_trains(run) else None
    except (OSError, ValueError, KeyError):
        return None


def facts_of(checkpoint: Path) -> dict:
    """The facts in the header of a checkpoint; OSError, ValueError or KeyError if it cannot be read."""
    _, header = read_tensor_header(checkpoint)
    return json.loads(header["__metadata__"][METADATA])["facts"]
