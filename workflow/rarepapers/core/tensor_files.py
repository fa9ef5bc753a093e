"""Tensor files: safetensors, written atomically, with a checksum that is verified on reading."""

import hashlib
import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from rarepapers.core.errors import UserError
from rarepapers.core.files import METADATA, atomic_path

CHECKSUM = "sha256"


def save_tensors(path: Path, tensors: dict[str, torch.Tensor], metadata: dict) -> None:
    """Write a safetensors file with a checksum atomically; a full disk raises UserError and keeps the old file."""
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    try:
        with atomic_path(path) as temporary:
            # In a single key, because safetensors writes several keys in varying order.
            save_file(tensors, temporary, {METADATA: json.dumps(metadata | {CHECKSUM: checksum_of(tensors)})})
    except SafetensorError as error:  # safetensors' error for disk failures
        raise UserError(f"{path} could not be written ({error}); is the disk full?") from None


def load_tensors(path: Path, remedy: str) -> tuple[dict[str, torch.Tensor], dict]:
    """Tensors and metadata written by `save_tensors`.

    Raises UserError, ending with `remedy`, if the file is missing, cut short or altered.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = json.loads((file.metadata() or {}).get(METADATA, "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); {remedy}") from None
    # Files of earlier versions have no checksum.
    if metadata.get(CHECKSUM, "") not in ("", checksum_of(tensors)):
        raise UserError(f"{path} is damaged: its checksum does not match; {remedy}")
    return tensors, metadata


def checksum_of(tensors: dict[str, torch.Tensor]) -> str:
    """sha256 of the names, types, shapes and bytes of tensors on the CPU."""
    checksum = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach()
        checksum.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        # As bytes, since NumPy has no bfloat16.
        checksum.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return checksum.hexdigest()
