"""Random states of a training (for dropout): one stream per process, saved in checkpoints.

The first process has the stream that a single process would have.
"""

import numpy as np
import torch

from rarepapers.machine import processes
from rarepapers.machine.clock import log
from rarepapers.training import distributed


def own_seed(seed: int, step: int) -> int:
    """Seed of this process's random numbers (dropout) from step `step` on; `seed` for the first process at step 0."""
    if processes.is_first() and not step:
        return seed
    return int(np.random.SeedSequence((seed, processes.rank(), step)).generate_state(1, np.uint64)[0] >> 1)


def random_states(device: str) -> dict[str, torch.Tensor]:
    """States of this process's torch generators, for the CPU and the GPU in use."""
    states = {"cpu": torch.get_rng_state()}
    if device == "cuda":
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def restore_random_states(states: dict[str, torch.Tensor], device: str) -> None:
    """Restore the states of `random_states`; that of a GPU only if one is in use now."""
    torch.set_rng_state(states["cpu"])
    if device == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"])


def gathered_states(device: str) -> dict[str, torch.Tensor]:
    """`random_states` of all processes; names of rank 1 are `cpu-1` and so on, those of rank 0 have no suffix."""
    return {
        f"{name}-{number}" if number else name: state
        for number, states in enumerate(distributed.gather(random_states(device)))
        for name, state in states.items()
    }


def restore_gathered_states(saved: dict[str, torch.Tensor], device: str) -> None:
    """Restore this process's states; does nothing if the state was saved by fewer processes."""
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
