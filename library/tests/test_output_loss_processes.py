"""`OutputLoss` in two processes, under DistributedDataParallel and FSDP2, trains as one with the whole batch."""

import pytest
import torch
from torch import distributed, multiprocessing
from torch.distributed import fsdp
from torch.nn.parallel import DistributedDataParallel

from raretok import AGG, Contrastive, CosReg, CrossEntropy, Freeze, OutputLoss, Threshold, Unlikelihood, ZLoss

TYPES, WIDTH = 11, 4
COUNTS = [90, 80, 70, 60, 50, 40, 30, 20, 10, 5, 1]


class Model(torch.nn.Module):
    """Hidden vectors from ids, and the loss, also if the output embedding is gathered only in its forward pass."""

    def __init__(self, options):
        super().__init__()
        torch.manual_seed(0)
        self.body = torch.nn.Embedding(TYPES, WIDTH, dtype=torch.float64)
        self.head = torch.nn.Linear(WIDTH, TYPES, bias=False, dtype=torch.float64)
        self.criterion = OutputLoss(**options, counts=COUNTS)

    def forward(self, ids, targets=None, token_weights=None):
        hidden = self.body(ids)
        if targets is None:
            return hidden
        return self.criterion(hidden, self.head.weight, targets, token_weights=token_weights, inputs=ids)


def train(rows, options, wrap=lambda model: model, weighted=False, within=True):
    """The weights after four steps of two micro-batches, in a process that sees `rows` of each.

    within: whether the loss is computed in the model's forward pass.
    """
    model = Model(options)
    whole = wrap(model)
    optimiser = torch.optim.SGD(whole.parameters(), lr=1.0)
    generator = torch.Generator().manual_seed(1)
    for _ in range(4):
        texts = torch.randint(TYPES, (2, 5, 7), generator=generator)
        weights = torch.rand(2, 5, 6, generator=generator, dtype=torch.float64) if weighted else [None, None]
        targets = texts[:, :, 1:].clone()
        targets[0, 0, :4] = -100
        micro = list(zip(texts[:, rows, :-1], targets[:, rows], weights, strict=True))
        model.criterion.begin_step([goals for _, goals, _ in micro])
        for ids, goals, own in micro:
            own = None if own is None else own[rows]
            if within:
                whole(ids, goals, own).backward()
            else:
                model.criterion(whole(ids), model.head.weight, goals, token_weights=own).backward()
        optimiser.step()
        optimiser.zero_grad()
    found = [getattr(parameter, "full_tensor", lambda p=parameter: p)() for parameter in whole.parameters()]
    return torch.cat([parameter.detach().flatten() for parameter in found])


def sharded(model):
    """The model under FSDP2, with the head in its own group."""
    fsdp.fully_shard(model.body)
    outside = fsdp.fully_shard(Model({})).head.weight
    with pytest.raises(ValueError, match="weight is sharded; call OutputLoss in the forward pass"):
        OutputLoss()(torch.zeros(1, WIDTH), outside, torch.zeros(1, dtype=torch.int64))
    return fsdp.fully_shard(model)


WRAPS = {"ddp": DistributedDataParallel, "fsdp": sharded}
OPTIONS = {
    "agg": {"gate": AGG(alpha=2.5, memory=2), "penalty": CosReg()},
    "threshold": {"loss": Threshold(margin=0.5), "penalty": ZLoss(0.1), "soft_cap": 3.0},
    "contrastive": {"loss": Contrastive()},
    "freeze": {"loss": CrossEntropy(label_smoothing=0.1), "gate": Freeze(part="bc", share=0.3)},
    "unlikelihood": {"penalty": Unlikelihood()},
}


def process(rank, store, folder, wrap, options, weighted, within):
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    # Different numbers of targets.
    rows = slice(0, 2) if rank == 0 else slice(2, 5)
    torch.save(train(rows, OPTIONS[options], WRAPS[wrap], weighted, within), f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


@pytest.mark.parametrize(
    ("wrap", "options", "weighted", "within"),
    [
        ("ddp", "agg", False, False),
        ("ddp", "threshold", True, True),
        ("fsdp", "threshold", True, True),
        ("fsdp", "agg", False, True),
        *(("ddp", options, False, True) for options in ("contrastive", "freeze", "unlikelihood")),
    ],
)
def test_two_processes_train_as_one(tmp_path, wrap, options, weighted, within):
    if wrap == "fsdp" and not hasattr(fsdp, "fully_shard"):
        pytest.skip("FSDP2 came with torch 2.6")
    # Forked, which saves the seconds of importing torch.
    arguments = (tmp_path / "store", tmp_path, wrap, options, weighted, within)
    multiprocessing.start_processes(process, arguments, nprocs=2, start_method="fork")
    alone = train(slice(None), OPTIONS[options], weighted=weighted)
    assert (train(slice(0, 2), OPTIONS[options], weighted=weighted) - alone).abs().max() > 0.01
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        torch.testing.assert_close(found, alone, rtol=0, atol=1e-12)


def loading(rank, store, folder):
    """Three steps; the first process saves its state, which both load after the other steps' own states."""
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    model, new = (Model({"gate": AGG(alpha=2.5, memory=2)}) for _ in range(2))
    ids = torch.randint(TYPES, (3, 3 + rank, 6), generator=torch.Generator().manual_seed(rank))
    for text in ids:
        model(text[:, :-1], text[:, 1:]).backward()
    own = model.criterion.state_dict()
    if rank == 0:
        torch.save(own, f"{folder}/first.pt")
    distributed.barrier()
    state, words = torch.load(f"{folder}/first.pt", weights_only=True), None
    try:
        new.criterion.load_state_dict(state)
    except ValueError as error:
        words = str(error)
        assert new.criterion.steps == 0
        new.criterion.load_state_dict(own)
    assert new.criterion.steps == 3
    for text in ids:
        for each in (model, new):
            each(text[:, :-1], text[:, 1:]).backward()
        assert torch.equal(new.criterion._gate.total, model.criterion._gate.total)
    torch.save(words, f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


def test_a_process_refuses_the_state_of_another(tmp_path):
    """Subtracting another's targets from the counts of all makes them negative."""
    multiprocessing.start_processes(loading, (tmp_path / "store", tmp_path), nprocs=2, start_method="fork")
    words = "targets of process 0 of 2, but this is process {}; each process must save and load its own state"
    assert torch.load(tmp_path / "0.pt") is None
    assert words.format("1 of 2") in torch.load(tmp_path / "1.pt")
    alone = Model({"gate": AGG(alpha=2.5, memory=2)}).criterion
    with pytest.raises(ValueError, match=words.format("0 of 1") + ". If their number has changed"):
        alone.load_state_dict(torch.load(tmp_path / "first.pt", weights_only=True))


def uneven(rank, store, folder, reduction):
    """One step in the first process and two in the second, of as many texts."""
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.save(summed_losses(range(1 + rank), reduction), f"{folder}/{rank}.pt")
    distributed.barrier()  # Else the first could leave before the second has connected to it.
    distributed.destroy_process_group()


def summed_losses(steps, reduction):
    """The summed loss and `nll` of every step."""
    model, found = Model({"loss": Threshold(margin=0.5), "reduction": reduction}), []
    for step in steps:
        ids = torch.randint(TYPES, (1 + step, 6), generator=torch.Generator().manual_seed(step))
        loss = model(ids[:, :-1], ids[:, 1:]).sum()
        loss.backward()
        found.append(torch.stack([loss.detach(), model.criterion.nll]))
    return found


@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_sums_and_losses_of_positions_ignore_other_processes(tmp_path, reduction):
    """So processes may take different numbers of steps."""
    multiprocessing.start_processes(uneven, (tmp_path / "store", tmp_path, reduction), nprocs=2, start_method="fork")
    alone = summed_losses(range(2), reduction)
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        torch.testing.assert_close(found, alone[: 1 + rank], rtol=0, atol=1e-12)
