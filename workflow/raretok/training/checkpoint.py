"""The state of an unfinished training: one safetensors file, replaced atomically, refused by any other run.

Tensors carry a prefix that says whose they are (`model.`, `best.`, `optimiser.`, ...); everything that is no
tensor is JSON in the file's metadata. Nothing is pickled.
"""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from raretok.errors import UserError
from raretok.files import atomic_path

FILE_NAME = "checkpoint.safetensors"
# Raised whenever what a checkpoint holds changes, so that an old one is refused and not misread.
VERSION = 1


def save_tensors(path: Path, tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> None:
    """Write a safetensors file atomically; a full disk raises UserError and leaves the old file."""
    try:
        with atomic_path(path) as temporary:
            save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, temporary, metadata)
    except SafetensorError as error:  # safetensors' own name for an error of the disk
        raise UserError(f"{path} could not be written ({error}); is the disk full?") from None


def save_checkpoint(folder: Path, groups: dict[str, dict[str, torch.Tensor]], facts: dict) -> None:
    """Write the state of a training into `folder`.

    groups: prefix to tensors by name. facts: whatever JSON can hold; must contain `run`, `data` and `sources`.
    """
    tensors = {f"{prefix}.{name}": value for prefix, group in groups.items() for name, value in group.items()}
    # A copy on the CPU, and one of its own: tied or shared tensors cannot be stored twice.
    tensors = {name: value.detach().to("cpu", copy=True) for name, value in tensors.items()}
    save_tensors(folder / FILE_NAME, tensors, {"facts": json.dumps(facts | {"version": VERSION})})


def load_checkpoint(
    folder: Path, run: str, data: str, sources: str
) -> tuple[dict[str, dict[str, torch.Tensor]], dict] | None:
    """The groups and facts that `save_checkpoint` wrote into `folder`, or None when there is no state to continue.

    A state that other code wrote (digest `sources`) is none: going on would mix two trainings. Raises UserError
    when the state belongs to another run (hash `run`) or to other data (hash `data`), or cannot be read.
    """
    for leftover in folder.glob(f".{Path(FILE_NAME).stem}.*"):
        leftover.unlink()  # a write that was killed; the rename never happened
    path = folder / FILE_NAME
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads(file.metadata()["facts"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); delete it to start this run anew") from None
    for what, expected in (("version", VERSION), ("run", run), ("data", data)):
        if facts.get(what) != expected:
            raise UserError(
                f"{path} belongs to another {what} ({facts.get(what)}, not {expected}); "
                "delete it to start this run anew"
            )
    if facts["sources"] != sources:
        return None
    groups: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        prefix, rest = name.split(".", 1)
        groups.setdefault(prefix, {})[rest] = tensor
    return groups, facts


def random_states(device: str) -> dict[str, torch.Tensor]:
    """States of torch's own generators, of the CPU and of the GPU in use."""
    states = {"cpu": torch.get_rng_state()}
    if device == "cuda":
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def restore_random_states(states: dict[str, torch.Tensor], device: str) -> None:
    """Set torch's generators as `random_states` found them; a GPU's only where one is in use now."""
    torch.set_rng_state(states["cpu"])
    if device == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"])
