"""Several processes: counts are summed over all of them, so that every process has the same gates."""

import numpy as np
import torch
from torch import distributed, multiprocessing

from raretok.methods import TrainingFacts, agg, agps, counting

COUNTS = np.array([50, 40, 30, 20, 10, 5, 1])
GATES = [agg.AGG(alpha=0.9, memory=2), agps.AGPS(rare_from=4, mu_1=9.0, mu_2=7.0)]


def steps():
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(7, (8,), generator=generator) for _ in range(5)]


def train(part):
    """Gates after every step of a process that sees `part` of each step's targets."""
    seen = []
    for gate in GATES:
        state = gate.start(TrainingFacts(COUNTS, (), tokens_per_step=8, steps_per_epoch=5))
        for targets in steps():
            state.begin_step(targets[part])
            seen.append(state.gates(targets)[0])
    return torch.stack(seen)


def process(rank, store, folder):
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    # Unequal shares: three targets and five.
    part = slice(0, 3) if rank == 0 else slice(3, 8)
    torch.save(train(part), f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


def test_two_processes_have_the_gates_of_one(tmp_path):
    multiprocessing.spawn(process, (tmp_path / "store", tmp_path), nprocs=2)
    alone = train(slice(None))
    assert not torch.equal(train(slice(0, 3)), alone)
    for rank in range(2):
        assert torch.equal(torch.load(tmp_path / f"{rank}.pt"), alone)


def test_counts_are_summed_on_a_gpu_where_nccl_is_the_only_backend(monkeypatch):
    summed_there = []
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_backend", lambda group: "nccl")
    monkeypatch.setattr(torch.Tensor, "cuda", lambda counts: counts.clone())
    monkeypatch.setattr(distributed, "all_reduce", lambda counts, group: summed_there.append(counts.mul_(2)))
    targets = torch.tensor([0, 2, 2])
    assert counting.step_counts(targets, 4).tolist() == [2, 0, 4, 0]
    assert len(summed_there) == 1
