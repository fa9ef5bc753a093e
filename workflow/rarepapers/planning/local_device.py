"""The device of this machine, and its name in config/throughput.yaml; torch is imported only if it may be a GPU."""

from dataclasses import replace
from pathlib import Path

from rarepapers.machine.processor import has_bfloat16_products
from rarepapers.planning import throughput
from rarepapers.planning.throughput import CPU, Machine
from rarepapers.rule_inputs.resources import GPU_DRIVER


def load_local(root: Path) -> dict[str, Machine]:
    """The machines of `root`/config/throughput.yaml, with the CPU in the precision of this processor."""
    machines = throughput.load(root)
    if CPU in machines:
        machines[CPU] = replace(machines[CPU], has_bfloat16=has_bfloat16_products())
    return machines


def find_device(choice: str, machines: dict[str, Machine]) -> tuple[str, str | None, float | None]:
    """The device that torch trains on, in words; its name in config/throughput.yaml (None: unknown); its memory in GiB.

    Raises UserError for a requested GPU that is missing.
    """
    if choice == "cpu":
        return "the CPU (device: cpu)", CPU, None
    import torch

    from rarepapers.machine.device import is_gpu

    if not is_gpu(choice):
        hidden = "; there is a driver, but torch sees no GPU" if GPU_DRIVER.exists() else ""
        return f"the CPU: torch {torch.__version__} sees no GPU{hidden}", CPU, None
    name, number = torch.cuda.get_device_name(), torch.cuda.device_count()
    known = next((machine for machine in machines if machine in name), None)
    unknown = "" if known else ", which is not in config/throughput.yaml"
    return f"{number} x {name}{unknown}", known, torch.cuda.get_device_properties(0).total_memory / 2**30
