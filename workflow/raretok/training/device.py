"""Where to train, and what that machine is."""

import platform
import resource
import subprocess
from functools import cache
from pathlib import Path

import torch

from raretok import __version__
from raretok.errors import UserError


def choose_device(name: str) -> str:
    """`cpu` or `cuda`, from `auto`, `cpu` or `cuda`; UserError for a GPU that is not there."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name not in ("cpu", "cuda"):
        raise UserError(f"device is {name!r}; it can be auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("device is cuda, but torch sees no GPU here; use device=auto or device=cpu")
    return name


def describe_device(device: str) -> str:
    """The device in words, for the record of a run."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    names = [
        line.split(":", 1)[1].strip()
        for line in _read(Path("/proc/cpuinfo")).splitlines()
        if line.startswith("model name")
    ]
    return f"CPU, {names[0] if names else platform.machine()}, {torch.get_num_threads()} thread(s)"


def peak_memory_gib(device: str) -> float:
    """Highest memory so far in GiB: of the GPU when there is one, else resident memory of this process."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**30
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def versions() -> dict[str, str]:
    """Versions of what computed a result."""
    return {"raretok": __version__, "python": platform.python_version(), "torch": torch.__version__}


@cache
def source_commit() -> str:
    """Commit of the checkout this package lies in, with `+` when its sources were changed since; may be empty."""
    package = Path(__file__).resolve().parents[1]
    try:
        commit = _git(package, "rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git(package, "status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
