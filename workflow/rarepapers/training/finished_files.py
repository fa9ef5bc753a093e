"""Copies of final files in the state folder, so that a finished training is never repeated.

Snakemake deletes the outputs of a job whose end it missed, because it was killed itself or the cluster lost the job.
The copies are hard links and take no space while the original files exist.
"""

import os
import shutil
from pathlib import Path

from rarepapers.core.errors import UserError
from rarepapers.core.files import copy_file, read_json, write_json
from rarepapers.experiments.run_code import training_code, training_key
from rarepapers.models import CHECKPOINTS

RECORD = "training.json"  # written last, so its existence means that all files exist
# Files that `keep_weights: false` deletes after evaluation.
WEIGHTS = (*CHECKPOINTS.values(), "snapshots.safetensors")
FILES = (*WEIGHTS, "history.csv", "observations.npz", RECORD)
# Name of the copies' folder in the state folder of a run.
KEPT = "finished"


def keep(output: Path, folder: Path) -> None:
    """Copy the final files from `output` to `folder`, as hard links if possible."""
    if output == folder:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in FILES:
        _link(output / name, folder / name)


def restore(folder: Path, output: Path, identity: dict[str, str]) -> bool:
    """Link the files kept in `folder` to `output` if they belong to this training; returns whether they do.

    identity: the hashes `run`, `data` and `sources`, which must match the kept record.
    """
    if not holds(folder, identity):
        return False
    output.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (output / name).unlink(missing_ok=True)
        _link(folder / name, output / name)
        os.utime(output / name)  # Snakemake compares it with the time of the input files
    return True


def adopt(record: Path, run: dict, output: Path, corpus) -> None:
    """Copy the final files of a training with equal settings to `output`, as those of `run`.

    record: its training.json. corpus: the training data of `run`. Raises UserError if that training or its weights do
    not exist, or if it has other settings, data or code.
    """
    if not has_files(record):
        raise UserError(f"{record} or a file beside it does not exist; train that run first, or leave --same-as out")
    trained = read_json(record)
    if training_key(trained["settings"]) != training_key(run["settings"]) or trained["data"] != corpus.sha256:
        raise UserError(f"{record} is of a training with other settings or data; leave --same-as out")
    # The copy is taken for a training by the current code.
    if trained["sources"] != training_code(run["settings"], corpus.kind):
        raise UserError(f"{record} is of a training by other code; train that run again first, or leave --same-as out")
    for name in FILES[:-1]:
        copy_file(record.parent / name, output / name)
    same_as = {key: trained[key] for key in ("paper", "experiment", "method", "seed", "hash")}
    write_json(output / RECORD, trained | run | {"same_as": same_as})


def has_files(record: Path) -> bool:
    """Whether a training's record and its other final files exist; its weights may have been deleted."""
    return all((record.parent / name).exists() for name in FILES)


def holds(folder: Path, identity: dict[str, str]) -> bool:
    """Whether `folder` has the final files of this training; identity as in `restore`."""
    if not (folder / RECORD).exists():
        return False
    record = read_json(folder / RECORD)
    return all((record | {"run": record["hash"]}).get(key) == value for key, value in identity.items())


def _link(source: Path, target: Path) -> None:
    """Make `target` a hard link to `source`, or a copy where there are no links."""
    try:
        os.link(source, target)
    except OSError:
        copy_file(source, target)
