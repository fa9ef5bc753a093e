"""Copies between the host (CPU) and a device that do not wait for the device's pending work."""

import torch


def put(tensor: torch.Tensor, device: torch.device | str) -> torch.Tensor:
    """The tensor on a device. One of the CPU is copied from pinned memory, which does not wait for a GPU's work."""
    if tensor.device.type != "cpu" or torch.device(device).type == "cpu":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


class ToHost:
    """A tensor that is being copied to the host."""

    def __init__(self, tensor: torch.Tensor):
        self.copy, self.arrived = tensor, None
        if tensor.device.type != "cpu":
            self.copy = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)
            self.copy.copy_(tensor, non_blocking=True)
            self.arrived = torch.cuda.Event()
            self.arrived.record(torch.cuda.current_stream(tensor.device))

    def wait(self) -> torch.Tensor:
        """The tensor on the host."""
        if self.arrived is not None:
            self.arrived.synchronize()
        return self.copy
