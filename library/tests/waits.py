"""Operations that make the host wait for a GPU, for tests that record them."""

import torch

# Operations that read a value, and those whose result size depends on values.
NAMES = ("_local_scalar_dense", "nonzero", "masked_select", "bincount", "equal", "_unique2", "unique_dim")


def name_of(func) -> str:
    """An operator's name, such as `copy_`."""
    return func._schema.name.removeprefix("aten::")


def waits(func, args: tuple) -> bool:
    """Whether an operator with these arguments reads a value, or has a result whose size depends on values."""
    name = name_of(func)
    masks = name == "index" and any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1])
    return name in NAMES or masks
