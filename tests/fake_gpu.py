"""A simulated GPU: tensors that claim to be on a device and hold their values on the CPU.

Under `FakeGpu` all that is sent to the device `fakegpu` computes as on a CPU, but mixes with no CPU tensor that has a
dimension, and what would make the host wait for the device is recorded. So a GPU's two common faults, mixed devices
and unexpected waits, are found without one.
"""

import torch
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map_only
from waits import name_of, waits

DEVICE = "fakegpu"
MOVES = ("_to_copy", "copy_")


# On import: autograd counts the devices at its first backward pass (tests/test_fake_gpu.py).
_module = backend_registration._DummyBackendModule()
_module.get_amp_supported_dtype = lambda: [torch.bfloat16]
backend_registration._setup_privateuseone_for_python_backend(DEVICE, _module)


class OnDevice(torch.Tensor):
    """A tensor on the device; its values are on the CPU."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, values: torch.Tensor):
        """Wrap values."""
        return torch.Tensor._make_wrapper_subclass(
            cls, values.shape, values.stride(), values.storage_offset(), dtype=values.dtype, device=f"{DEVICE}:0"
        )

    def __init__(self, values: torch.Tensor):
        self.values = values

    def tolist(self):
        """Its values; torch supports this only for its own tensors."""
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        """Compute on the CPU what reaches the device outside of a `FakeGpu`."""
        return compute(func, args, kwargs or {})


def compute(func, args: tuple, kwargs: dict):
    """Compute on the CPU, and wrap the results that would be on the device."""
    name = name_of(func)
    if name == "_pin_memory":
        return args[0]
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    held = any(isinstance(tensor, OnDevice) for tensor in tensors)
    if held and name not in MOVES:
        mixed = [tensor for tensor in tensors if not isinstance(tensor, OnDevice) and tensor.dim()]
        assert not mixed, f"{name}: tensors on {DEVICE} and on the CPU"
    own_args, own_kwargs = tree_map_only(OnDevice, lambda tensor: tensor.values, (args, dict(kwargs)))
    own_kwargs.pop("pin_memory", None)
    if own_kwargs.get("device") is not None:
        own_kwargs["device"] = torch.device("cpu")
    result = func(*own_args, **own_kwargs)
    if not lies_on_device(name, args, kwargs, held):
        return args[0] if name == "copy_" else result
    return return_and_correct_aliasing(func, args, kwargs, tree_map_only(torch.Tensor, OnDevice, result))


def lies_on_device(name: str, args: tuple, kwargs: dict, held: bool) -> bool:
    """Whether a result is on the device; held: whether one of the tensors that it is computed from is."""
    if name == "copy_":
        return isinstance(args[0], OnDevice)
    wanted = kwargs.get("device")
    return held if wanted is None else torch.device(wanted).type == DEVICE


def empty_strided(size, stride, *, dtype=None, layout=None, device=None, pin_memory=None):
    """An empty tensor; with `copy_from`, all that torch needs of the device for `x[ids] = 0`."""
    return OnDevice(torch.empty_strided(size, stride, dtype=dtype))


def copy_from(source, target, non_blocking=False):
    """Copy to or from the device."""
    ends = (end.values if isinstance(end, OnDevice) else end for end in (target, source))
    next(ends).copy_(next(ends))
    return target


_library = torch.library.Library("aten", "IMPL")
_library.impl("empty_strided", empty_strided, "PrivateUse1")
_library.impl("_copy_from", copy_from, "PrivateUse1")


class FakeGpu(TorchDispatchMode):
    """Context in which the device exists; `waits` names the operations that made the host wait for it."""

    def __init__(self):
        super().__init__()
        self.waits: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Compute, and record a wait."""
        kwargs, name = kwargs or {}, name_of(func)
        held = any(isinstance(leaf, OnDevice) for leaf in tree_leaves((args, kwargs)))
        at_once = kwargs.get("non_blocking") or (name == "copy_" and args[2:] == (True,))
        leaves = name in MOVES and not lies_on_device(name, args, kwargs, held) and not at_once
        if held and (waits(func, args) or leaves):
            self.waits.append(name)
        return compute(func, args, kwargs)
