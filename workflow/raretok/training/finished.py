"""Final files kept beside the state, so that a finished training is never done twice.

Snakemake deletes what a job wrote when it did not see the job end: because it was killed itself, or the cluster
lost it. The links kept here cost no space while the files they link to exist.
"""

import os
import shutil
from pathlib import Path

from raretok.files import copy_file, read_json

RECORD = "training.json"  # written last, so its presence means that all are there
FILES = ("model.safetensors", "last.safetensors", "history.csv", "observations.npz", "snapshots.safetensors", RECORD)


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


def holds(folder: Path, identity: dict[str, str]) -> bool:
    """Whether `folder` has the final files of this training; identity as for `restore`."""
    if not (folder / RECORD).exists():
        return False
    record = read_json(folder / RECORD)
    return all((record | {"run": record["hash"]}).get(key) == value for key, value in identity.items())
