"""Checks of the types that a caller passes: one clear sentence in place of an error of torch."""

import torch

# Types of ids that torch gathers by.
INTEGERS = (torch.int64, torch.int32)


def check_tensors(**named) -> None:
    """Raises ValueError for a value that is no tensor, such as a layer in place of its weight."""
    for name, value in named.items():
        if not isinstance(value, torch.Tensor):
            hint = ", such as its weight" if isinstance(value, torch.nn.Module) else ""
            raise ValueError(f"{name} is of type {type(value).__name__}; give a tensor{hint}")


def check_ids(name: str, ids) -> None:
    """Raises ValueError unless ids are a tensor of whole numbers."""
    of_type = ids.dtype if isinstance(ids, torch.Tensor) else type(ids).__name__
    if of_type not in INTEGERS:
        raise ValueError(f"{name} are of type {of_type}; give a tensor of token ids, torch.int64 or torch.int32")


def outside(ids: torch.Tensor, types: int, ignored: int | None) -> int | None:
    """An id outside the vocabulary, or None; always None on a GPU, where looking for one would wait."""
    if ids.device.type != "cpu":
        return None
    wrong = (ids < 0) | (ids >= types)
    if ignored is not None:
        wrong &= ids != ignored
    return ids[wrong][0].item() if wrong.any() else None


def check_targets(targets: torch.Tensor, types: int, ignored: int | None) -> None:
    """Raises ValueError for a target outside the vocabulary, on a CPU."""
    wrong = outside(targets, types, ignored)
    if wrong is not None:
        remedy = f", or {ignored} to be ignored" if ignored is not None else " (ignore_index is None)"
        raise ValueError(f"a target is {wrong}; it must be below {types}, the number of rows of weight{remedy}")
