"""The processor: its model, and whether it computes in bfloat16. Needs no torch."""

import platform
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
# Linux's names of the CPU instructions for bfloat16 products: AVX512-BF16 and AMX.
BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16"}


def processor_name(cpuinfo: Path | None = None) -> str:
    """The first core's model; on Linux with family and model numbers, since virtual machines give general names."""
    name = cpu_entry("model name", cpuinfo)
    if not name:
        return platform.machine()
    numbers = [f"{key.removeprefix('cpu ')} {cpu_entry(key, cpuinfo)}" for key in ("cpu family", "model")]
    return f"{name} ({', '.join(numbers)})"


def has_bfloat16_products(cpuinfo: Path | None = None) -> bool:
    """Whether the processor multiplies faster in bfloat16 than in float32."""
    return not BFLOAT16_FLAGS.isdisjoint(cpu_entry("flags", cpuinfo).split())


def cpu_entry(key: str, cpuinfo: Path | None = None) -> str:
    """The value of `key` for the first core in Linux's /proc/cpuinfo; empty on other systems."""
    path = cpuinfo or CPUINFO
    lines = path.read_text().splitlines() if path.exists() else []
    values = (value.strip() for name, _, value in (line.partition(":") for line in lines) if name.strip() == key)
    return next(values, "")
