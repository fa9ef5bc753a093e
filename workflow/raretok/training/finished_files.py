"""Final files kept beside the state, so that a finished training is never done twice.

Snakemake deletes what a job wrote when it did not see the job end: because it was killed itself, or the cluster
lost it. The links kept here cost no space while the files they link to exist.
"""

import os
import shutil
from pathlib import Path

from raretok.core.errors import UserError
from raretok.core.files import copy_file, read_json, write_json
from raretok.experiments.run_code import training_code, training_key

RECORD = "training.json"  # written last, so its presence means that all are there
# What `keep_weights: false` deletes once it is measured.
WEIGHTS = ("model.safetensors", "last.safetensors", "snapshots.safetensors")
FILES = (*WEIGHTS, "history.csv", "observations.npz", RECORD)
# Where they are kept, in the state folder of their run.
KEPT = "finished"


def keep(output: Path, folder: Path) -> None:
    """Keep the final files of `output` in `folder`, by hard links where the disk has them."""
    if output == folder:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in FILES:
        try:
            os.link(output / name, folder / name)
        except OSError:
            shutil.copyfile(output / name, folder / name)


def restore(folder: Path, output: Path, identity: dict[str, str]) -> bool:
    """Put the files kept in `folder` into `output`, if they are of this training; whether they were.

    identity: `run`, `data` and `sources`, hashes that must be the kept record's.
    """
    if not holds(folder, identity):
        return False
    for name in FILES:
        copy_file(folder / name, output / name)
    keep(output, folder)
    return True


def adopt(record: Path, run: dict, output: Path, corpus) -> None:
    """Copy the final files of a training with the same weights to `output`, as those of `run`.

    record: its training.json. corpus: what `run` is trained on. Raises UserError where there is no such training, or it
    has other settings or data.
    """
    if not record.exists():
        raise UserError(f"{record} does not exist; train that run first, or leave --same-as out")
    trained = read_json(record)
    if training_key(trained["settings"]) != training_key(run["settings"]) or trained["data"] != corpus.sha256:
        raise UserError(f"{record} is of a training with other settings or data; leave --same-as out")
    for name in FILES[:-1]:
        copy_file(record.parent / name, output / name)
    same_as = {key: trained[key] for key in ("paper", "experiment", "method", "seed", "hash")}
    sources = training_code(run["settings"], corpus.kind)
    write_json(output / RECORD, trained | run | {"sources": sources, "same_as": same_as})


def holds(folder: Path, identity: dict[str, str]) -> bool:
    """Whether `folder` has the final files of this training; identity as for `restore`."""
    if not (folder / RECORD).exists():
        return False
    record = read_json(folder / RECORD)
    return all((record | {"run": record["hash"]}).get(key) == value for key, value in identity.items())
