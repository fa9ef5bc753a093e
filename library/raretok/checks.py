"""Checks of the types that a caller passes: one clear sentence in place of an error of torch."""

import torch

# Types of ids that torch gathers by, and others, which become int64.
INDICES = (torch.int64, torch.int32)
OTHERS = (torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32)


def check_tensors(**named) -> None:
    """Raises ValueError for a value that is no tensor, such as a layer in place of its weight."""
    for name, value in named.items():
        if not isinstance(value, torch.Tensor):
            hint = ", such as its weight" if isinstance(value, torch.nn.Module) else ""
            raise ValueError(f"{name} is of type {type(value).__name__}; give a tensor{hint}")


def check_ids(name: str, ids) -> None:
    """Raises ValueError unless ids are a tensor of whole numbers."""
    of_type = ids.dtype if isinstance(ids, torch.Tensor) else type(ids).__name__
    if of_type not in INDICES + OTHERS:
        raise ValueError(f"{name} are of type {of_type}; give a tensor of token ids, such as torch.int64")


def whole_numbers(ids):
    """Ids of a type that torch gathers by, if they are ids; in 8 bits without sign, -100 would be the id 156."""
    return ids.to(torch.int64) if isinstance(ids, torch.Tensor) and ids.dtype in OTHERS else ids


def check_layer(hidden, weight, targets, bias) -> None:
    """Raises ValueError for wrong types and shapes of an output layer and its targets."""
    check_tensors(hidden=hidden, weight=weight, **({} if bias is None else {"bias": bias}))
    check_ids("targets", targets)
    if hidden.dim() < 2:
        raise ValueError(f"hidden is {shape_of(hidden)}; it must be B x T x d or N x d")
    if hidden.shape[:-1] != targets.shape:
        raise ValueError(
            f"hidden is {shape_of(hidden)}, but targets are {shape_of(targets)}; they must be "
            f"{shape_of(hidden[..., 0])}"
        )
    if weight.dim() != 2 or weight.shape[1] != hidden.shape[-1]:
        raise ValueError(f"weight is {shape_of(weight)}; it must be V x {hidden.shape[-1]}, as wide as hidden")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias is {shape_of(bias)}; it must be {len(weight)}, one per row of weight")


def shape_of(tensor: torch.Tensor) -> str:
    """2 x 7 x 16."""
    return " x ".join(map(str, tensor.shape)) or "a scalar"


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
