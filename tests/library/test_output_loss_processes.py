"""`OutputLoss` in two processes under DistributedDataParallel trains as one process does with the whole batch."""

import torch
from torch import distributed, multiprocessing
from torch.nn.parallel import DistributedDataParallel

from raretok import AGG, CosReg, OutputLoss

TYPES, WIDTH = 11, 4
COUNTS = [90, 80, 70, 60, 50, 40, 30, 20, 10, 5, 1]


class Model(torch.nn.Module):
    """Hidden vectors from ids, and an output embedding that a loss reads beside the forward pass."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body = torch.nn.Embedding(TYPES, WIDTH, dtype=torch.float64)
        self.head = torch.nn.Linear(WIDTH, TYPES, bias=False, dtype=torch.float64)

    def forward(self, ids):
        return self.body(ids)


def train(rows, wrap=lambda model: model):
    """The weights after four steps of two micro-batches, of a process that sees some `rows` of each."""
    model = Model()
    whole, criterion = wrap(model), OutputLoss(gate=AGG(alpha=2.5, memory=2), penalty=CosReg(), counts=COUNTS)
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    generator = torch.Generator().manual_seed(1)
    for _ in range(4):
        texts = torch.randint(TYPES, (2, 5, 7), generator=generator)
        targets = texts[:, :, 1:].clone()
        targets[0, 0, :4] = -100
        micro = list(zip(texts[:, rows, :-1], targets[:, rows], strict=True))
        criterion.begin_step([goals for _, goals in micro])
        for ids, goals in micro:
            criterion(whole(ids), model.head.weight, goals).backward()
        optimiser.step()
        optimiser.zero_grad()
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def process(rank, store, folder):
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    # Different numbers of targets.
    torch.save(train(slice(0, 2) if rank == 0 else slice(2, 5), DistributedDataParallel), f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


def test_two_processes_train_as_one(tmp_path):
    # Forked: seconds less than to import torch anew.
    multiprocessing.start_processes(process, (tmp_path / "store", tmp_path), nprocs=2, start_method="fork")
    alone = train(slice(None))
    assert (train(slice(0, 2)) - alone).abs().max() > 0.01
    for rank in range(2):
        torch.testing.assert_close(torch.load(tmp_path / f"{rank}.pt"), alone, rtol=0, atol=1e-12)
