"""Checkpoint files: atomic write, digest, restore.

`checkpoint.safetensors` holds everything needed to continue except the best weights so far. The prefix of a tensor's
name says what it belongs to (`model.`, `optimiser.`, ...); everything that is not a tensor is JSON in the metadata. The
best weights change seldom and lie in `best-<step>.safetensors`. This file is written before the checkpoint that names
its step, and removed after a checkpoint that names another step, so the file named by a checkpoint always exists. If
the mean of the last validated weights is needed, they lie in `validated-<step>.safetensors`; snapshots of the output
matrix lie in `snapshot-<step>.safetensors` until the end. No file is a pickle.

Each file's metadata holds a checksum of its tensors, which is compared on reading: safetensors detects a truncated
file, but not a changed byte.
"""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import torch

from rarepapers.core.errors import UserError
from rarepapers.core.files import CHECKPOINT, atomic_path, read_tensor_header
from rarepapers.core.tensor_files import load_tensors, save_tensors


def save_checkpoint(folder: Path, groups: dict[str, dict[str, torch.Tensor]], facts: dict) -> None:
    """Write the state of a training to `folder`.

    groups: prefix to tensors by name. facts: JSON-compatible values; must contain `run`, `data` and `sources`.
    """
    tensors = {f"{prefix}.{name}": value for prefix, group in groups.items() for name, value in group.items()}
    # Separate copies on the CPU, because safetensors cannot store shared tensors.
    tensors = {name: value.detach().to("cpu", copy=True) for name, value in tensors.items()}
    save_tensors(folder / CHECKPOINT, tensors, {"facts": facts})


def load_checkpoint(
    folder: Path, run: str, data: str, sources: str, counts: str | None = None
) -> tuple[dict[str, dict[str, torch.Tensor]], dict] | None:
    """The groups and facts that `save_checkpoint` wrote to `folder`, or None if there is no state to continue.

    A state written by other code (digest `sources`) is ignored: continuing would mix two trainings. Raises UserError if
    the state belongs to another run (hash `run`) or to other data (hash `data`, and `counts` of another text if the run
    starts from one), or cannot be read.
    """
    for leftover in folder.glob(f".{Path(CHECKPOINT).stem}.*"):
        leftover.unlink(missing_ok=True)  # of a killed write, before its rename
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    anew = "delete it to start this run anew"
    tensors, metadata = load_tensors(path, anew)
    facts = metadata.get("facts", {})
    for what, expected in (("run", run), ("data", data), ("counts", counts)):
        if facts.get(what) != expected:
            raise UserError(f"{path} belongs to another {what} ({facts.get(what)}, not {expected}); {anew}")
    if facts["sources"] != sources:
        return None
    groups: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        prefix, rest = name.split(".", 1)
        groups.setdefault(prefix, {})[rest] = tensor
    return groups, facts


def weights_path(folder: Path, kind: str, step: int) -> Path:
    """Path of the weights after `step` steps; kind: `best` or `validated`."""
    return folder / f"{kind}-{step:07d}.safetensors"


def save_weights(folder: Path, kind: str, weights: dict[str, torch.Tensor], step: int) -> None:
    """Write weights unless they exist; call this before writing the checkpoint that names `step`."""
    if not weights_path(folder, kind, step).exists():
        save_tensors(weights_path(folder, kind, step), weights, {})


def load_weights(folder: Path, kind: str, step: int) -> dict[str, torch.Tensor]:
    """The weights written by `save_weights`; raises UserError if they cannot be read."""
    return load_tensors(weights_path(folder, kind, step), f"delete {folder} to start this run anew")[0]


def drop_weights(folder: Path, kind: str, keep: Iterable[int] = ()) -> None:
    """Remove weights except those of the steps `keep`, and leftovers of killed writes."""
    kept = {weights_path(folder, kind, step) for step in keep}
    for path in [*folder.glob(f"{kind}-*.safetensors"), *folder.glob(f".{kind}-*")]:
        if path not in kept:
            path.unlink()


def snapshot_path(folder: Path, step: int) -> Path:
    """Path of the output matrix after `step` steps."""
    return folder / f"snapshot-{step:07d}.safetensors"


def save_snapshot(folder: Path, step: int, matrix: torch.Tensor) -> None:
    """Write the output matrix (V x d) after `step` steps, in 16 bits."""
    save_tensors(snapshot_path(folder, step), {f"step{step:06d}": matrix.detach().to("cpu", torch.float16)}, {})


def gather_snapshots(folder: Path, steps: Iterable[int], output: Path, run: str) -> None:
    """Copy the snapshots of `steps` to one safetensors file `output`, with only a part in memory at a time.

    The format: length of the header (8 bytes, little endian), header (JSON), bytes of the tensors. Raises UserError if
    a snapshot is missing.
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
    """Remove the state of a finished training; its final files are kept elsewhere."""
    (folder / CHECKPOINT).unlink(missing_ok=True)
    drop_weights(folder, "best")
    drop_weights(folder, "validated")
    for path in folder.glob("snapshot-*.safetensors"):
        path.unlink()
