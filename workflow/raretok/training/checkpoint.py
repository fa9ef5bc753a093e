"""The state of an unfinished training: safetensors files, replaced atomically, refused by any other run.

`checkpoint.safetensors` holds all that continuing needs but the best weights so far. Its tensors carry a prefix that
says whose they are (`model.`, `optimiser.`, ...); everything that is no tensor is JSON in its metadata. The best
weights change seldom and lie in `best-<step>.safetensors`: written before the checkpoint that names that step, and
removed after the checkpoint that names another, so the file that a checkpoint names is always there. The weights of
the last validations, where their mean is wanted, lie likewise in `validated-<step>.safetensors`, and snapshots of the
output matrix in `snapshot-<step>.safetensors` until the end. Nothing is pickled.

Each file's metadata holds a checksum of its tensors, compared when it is read: safetensors notices a file that is cut
short, but not a byte that is another.
"""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import torch

from raretok.core.errors import UserError
from raretok.core.files import atomic_path, read_tensor_header
from raretok.core.tensor_files import load_tensors, save_tensors

FILE_NAME = "checkpoint.safetensors"
# Raised whenever what a checkpoint holds changes, so that an old one is refused and not misread.
VERSION = 5


def save_checkpoint(folder: Path, groups: dict[str, dict[str, torch.Tensor]], facts: dict) -> None:
    """Write the state of a training into `folder`.

    groups: prefix to tensors by name. facts: whatever JSON can hold; must contain `run`, `data` and `sources`.
    """
    tensors = {f"{prefix}.{name}": value for prefix, group in groups.items() for name, value in group.items()}
    # A copy on the CPU, and one of its own: tied or shared tensors cannot be stored twice.
    tensors = {name: value.detach().to("cpu", copy=True) for name, value in tensors.items()}
    save_tensors(folder / FILE_NAME, tensors, {"facts": facts | {"version": VERSION}})


def load_checkpoint(
    folder: Path, run: str, data: str, sources: str, counts: str | None = None
) -> tuple[dict[str, dict[str, torch.Tensor]], dict] | None:
    """The groups and facts that `save_checkpoint` wrote into `folder`, or None when there is no state to continue.

    A state that other code wrote (digest `sources`) is none: going on would mix two trainings. Raises UserError
    when the state belongs to another run (hash `run`) or to other data (hash `data`, and `counts` of another text where
    the run starts from such), or cannot be read.
    """
    for leftover in folder.glob(f".{Path(FILE_NAME).stem}.*"):
        leftover.unlink(missing_ok=True)  # a write that was killed; the rename never happened
    path = folder / FILE_NAME
    if not path.exists():
        return None
    anew = "delete it to start this run anew"
    tensors, metadata = load_tensors(path, anew)
    facts = metadata.get("facts", {})
    for what, expected in (("version", VERSION), ("run", run), ("data", data), ("counts", counts)):
        if facts.get(what) != expected:
            raise UserError(f"{path} belongs to another {what} ({facts.get(what)}, not {expected}); {anew}")
    if facts["sources"] != sources:
        return None
    groups: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        prefix, rest = name.split(".", 1)
        groups.setdefault(prefix, {})[rest] = tensor
    return groups, facts


def best_path(folder: Path, step: int) -> Path:
    """Where the best weights lie when they are those after `step` steps."""
    return folder / f"best-{step:07d}.safetensors"


def save_best(folder: Path, weights: dict[str, torch.Tensor], step: int) -> None:
    """Write the best weights unless they are there; call it before the checkpoint that names `step`."""
    if not best_path(folder, step).exists():
        save_tensors(best_path(folder, step), weights, {})


def load_best(folder: Path, step: int) -> dict[str, torch.Tensor]:
    """The weights that `save_best` wrote; UserError when they cannot be read."""
    return _load_weights(best_path(folder, step))


def drop_best(folder: Path, keep: int | None = None) -> None:
    """Remove best weights that no checkpoint names: all but those of step `keep`, and writes that were killed."""
    for path in [*folder.glob("best-*.safetensors"), *folder.glob(".best-*")]:
        if keep is None or path != best_path(folder, keep):
            path.unlink()


def validated_path(folder: Path, step: int) -> Path:
    """Where the weights validated after `step` steps lie."""
    return folder / f"validated-{step:07d}.safetensors"


def save_validated(folder: Path, weights: dict[str, torch.Tensor], step: int) -> None:
    """Write the weights after `step` steps, for a mean of several."""
    save_tensors(validated_path(folder, step), weights, {})


def load_validated(folder: Path, step: int) -> dict[str, torch.Tensor]:
    """The weights that `save_validated` wrote; UserError when they cannot be read."""
    return _load_weights(validated_path(folder, step))


def drop_validated(folder: Path, keep: Iterable[int] = ()) -> None:
    """Remove validated weights but those of the steps `keep`, and writes that were killed."""
    kept = {validated_path(folder, step) for step in keep}
    for path in [*folder.glob("validated-*.safetensors"), *folder.glob(".validated-*")]:
        if path not in kept:
            path.unlink()


def snapshot_path(folder: Path, step: int) -> Path:
    """Where the output matrix after `step` steps lies."""
    return folder / f"snapshot-{step:07d}.safetensors"


def save_snapshot(folder: Path, step: int, matrix: torch.Tensor) -> None:
    """Write the output matrix (V x d) after `step` steps, in 16 bits."""
    save_tensors(snapshot_path(folder, step), {f"step{step:06d}": matrix.detach().to("cpu", torch.float16)}, {})


def gather_snapshots(folder: Path, steps: Iterable[int], output: Path, run: str) -> None:
    """Copy the snapshots of `steps` into the one safetensors file `output`, never more than a part in memory.

    The format: the header's length (8 bytes, little endian), the header (JSON), the tensors' bytes.
    Raises UserError when a snapshot is missing.
    """
    header, offset, sources = {"__metadata__": {"run": run}}, 0, []
    try:
        for step in steps:
            path = snapshot_path(folder, step)
            start, entries = read_tensor_header(path)
            ((name, entry),) = [item for item in entries.items() if item[0] != "__metadata__"]
            size = entry["data_offsets"][1]
            header[name] = entry | {"data_offsets": [offset, offset + size]}
            offset += size
            sources.append((path, start))
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with atomic_path(output) as temporary, temporary.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for path, start in sources:
                with path.open("rb") as source:
                    source.seek(start)
                    shutil.copyfileobj(source, file, 2**20)
    except FileNotFoundError as error:
        raise UserError(f"{error.filename} is gone; delete {folder} to start this run anew") from None
    except OSError as error:
        raise UserError(f"{output} could not be written ({error}); is the disk full?") from None


def drop_state(folder: Path) -> None:
    """Remove the state of a training that is done: its final files are kept elsewhere."""
    (folder / FILE_NAME).unlink(missing_ok=True)
    drop_best(folder)
    drop_validated(folder)
    for path in folder.glob("snapshot-*.safetensors"):
        path.unlink()


def _load_weights(path: Path) -> dict[str, torch.Tensor]:
    return load_tensors(path, f"delete {path.parent} to start this run anew")[0]
