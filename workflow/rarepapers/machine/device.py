"""The device that computes: choice, description, memory."""

import ctypes
import platform
import resource
import subprocess
from functools import cache
from pathlib import Path

import torch

from rarepapers.core.errors import UserError
from rarepapers.machine.gpu_locks import take_place
from rarepapers.machine.processor import CPUINFO, cpu_entry, has_bfloat16_products
from raretok import __version__

# Parameters of glibc's `mallopt` (malloc.h), and the maximum of the first.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, LARGEST_BLOCK = -1, -3, 32 * 2**20


def choose_device(name: str, runs_per_gpu: int = 1) -> str:
    """`cpu` or `cuda`, from `auto`, `cpu` or `cuda`; with several GPUs, a free one becomes the current device.

    runs_per_gpu: number of processes that may share a GPU; waits while all places are taken (`take_place`). Raises
    UserError if a GPU is requested but not available.
    """
    if not is_gpu(name):
        return "cpu"
    torch.cuda.set_device(take_place(gpu_names(), runs_per_gpu))
    return "cuda"


def is_gpu(name: str) -> bool:
    """Whether `auto`, `cpu` or `cuda` means a GPU here; raises UserError for a missing GPU or another name."""
    if name not in ("auto", "cpu", "cuda"):
        raise UserError(f"device is {name!r}; it can be auto, cpu or cuda")
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return False
    if not torch.cuda.is_available():
        raise UserError("device is cuda, but torch sees no GPU here; use device=auto or device=cpu")
    return True


def has_bfloat16(device: str) -> bool:
    """Whether `cpu` or `cuda` multiplies faster in bfloat16 than in float32."""
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return has_bfloat16_products(CPUINFO)


def keep_freed_memory() -> None:
    """Let this process keep freed memory for its next tensors; no-op if the C library is not glibc.

    By default glibc returns large blocks to the kernel at once, which clears every page again when the next step
    requests it: a fifteenth of a step's time.
    """
    if platform.libc_ver()[0] == "glibc":
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, LARGEST_BLOCK)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def gpu_names() -> list[str]:
    """Unique names (UUIDs) of the GPUs that torch sees on this machine."""
    return [str(torch.cuda.get_device_properties(index).uuid) for index in range(torch.cuda.device_count())]


def describe_device(device: str) -> str:
    """Description of the device for the record of a run."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    return f"CPU, {cpu_entry('model name') or platform.machine()}, {torch.get_num_threads()} thread(s)"


def peak_memory_gib(device: str) -> float:
    """Peak memory so far in GiB: of the GPU if there is one, else resident memory of this process."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**30
    # In KiB on Linux, in bytes on macOS.
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def versions() -> dict[str, str]:
    """Versions of the software that computed a result."""
    return {"raretok": __version__, "python": platform.python_version(), "torch": torch.__version__}


@cache
def source_commit() -> str:
    """Commit of the checkout of this package, with `+` if its sources have changed since; may be empty."""
    package = Path(__file__).resolve().parents[1]
    try:
        commit = _git(package, "rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git(package, "status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
