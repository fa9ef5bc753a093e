"""Random numbers of a training (dropout): every process has a stream of its own, which a checkpoint keeps.

The first process's is that of a process alone.
"""

import numpy as np
import torch

from raretok.machine import processes
from raretok.machine.clock import log
from raretok.training import distributed


def own_seed(seed: int, step: int) -> int:
    """Seeds this process's random numbers (dropout) from update `step` on; the first's from the start are `seed`'s."""
    if processes.is_first() and not step:
        return seed
    return int(np.random.SeedSequence((seed, processes.rank(), step)).generate_state(1, np.uint64)[0] >> 1)


def random_states(device: str) -> dict[str, torch.Tensor]:
    """States of torch's own generators, of the CPU and of the GPU in use, of this process."""
    states = {"cpu": torch.get_rng_state()}
    if device == "cuda":
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def restore_random_states(states: dict[str, torch.Tensor], device: str) -> None:
    """Set torch's generators as `random_states` found them; a GPU's only where one is in use now."""
    torch.set_rng_state(states["cpu"])
    if device == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"])


def gathered_states(device: str) -> dict[str, torch.Tensor]:
    """`random_states` of every process, `cpu-1` for that of number 1; the first's by their own names."""
    return {
        f"{name}-{number}" if number else name: state
        for number, states in enumerate(distributed.gather(random_states(device)))
        for name, state in states.items()
    }


def restore_gathered_states(saved: dict[str, torch.Tensor], device: str) -> None:
    """Take over this process's states; nothing changes where there are none, of a training by fewer processes."""
    end = f"-{processes.rank()}" if processes.rank() else ""
    own = {name: saved[name + end] for name in ("cpu", "cuda") if name + end in saved}
    if own:
        restore_random_states(own, device)
    before = sum(name.startswith("cpu") for name in saved)
    if before != processes.size():
        log(
            f"{before} process(es) trained this run before, now {processes.size()} do: "
            "its dropout, if any, goes on with other random numbers"
        )
