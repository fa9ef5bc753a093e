"""Who divides the loss: conventions of trainers with two processes that have unequal numbers of targets.

Every convention must give the gradients of one process with the whole batch.
"""

import pytest
import torch
import torch.distributed.nn.functional as differentiable
from test_patch import TYPES, tiny
from torch import distributed, multiprocessing
from torch.nn import functional as F

import raretok
from raretok import AGG, Contrastive, OutputLoss, Threshold

pytest.importorskip("transformers")
COUNTS = torch.arange(TYPES, 0, -1)
GATE = AGG(alpha=0.2, memory=2)


def llama(dtype=torch.float64):
    return tiny("llama", tie_word_embeddings=False).to(dtype)


def batch(rank):
    """One sequence of 12 positions with 3 or 9 targets; the positions of both processes are independent texts."""
    ids = torch.randint(1, TYPES, (1, 12), generator=torch.Generator().manual_seed(rank))
    targets = torch.randint(1, TYPES, (1, 12), generator=torch.Generator().manual_seed(7 + rank))
    targets[0, (3 if rank == 0 else 9) :] = -100
    return ids, targets


def model_loss(model, ids, targets, **named):
    return model(ids, labels=targets, shift_labels=targets, **named).loss


def averaged(model):
    """As DistributedDataParallel: gradients are averaged."""
    for parameter in model.parameters():
        distributed.all_reduce(parameter.grad)
        parameter.grad /= distributed.get_world_size()


def of_ddp(model, rank, patch):
    """A loop of one's own: every process trains on its loss, and gradients are averaged."""
    patch(model, processes="all")
    model_loss(model, *batch(rank)).backward()
    averaged(model)


def of_transformers(model, rank, patch):
    """Trainer: the loss is divided by the targets of all processes, and multiplied by their number."""
    patch(model)
    (model_loss(model, *batch(rank), num_items_in_batch=torch.tensor(12)) * 2).backward()
    averaged(model)


def of_sequence_parallel(model, rank, patch):
    """Trainer with DeepSpeed's sequence parallelism: means of processes are weighted by their targets."""
    patch(model)
    ids, targets = batch(rank)
    losses = torch.stack(differentiable.all_gather(model_loss(model, ids, targets)))
    numbers = torch.tensor([3, 9])
    ((losses * numbers).sum() / numbers.sum()).backward()
    # The gradient of all_gather adds up the losses' gradients of all processes.
    averaged(model)


def of_tensor_parallel(model, rank, patch):
    """Both processes hold the same batch, in a group of their own each."""
    groups = [distributed.new_group([each]) for each in range(2)]
    patch(model, processes=groups[rank])
    ids, targets = (torch.cat(parts) for parts in zip(batch(0), batch(1), strict=True))
    model_loss(model, ids, targets).backward()


CONVENTIONS = [of_ddp, of_transformers, of_sequence_parallel, of_tensor_parallel]
PARTS = {"plain": {}, "threshold": {"loss": Threshold(margin=0.02)}, "agg": {"gate": GATE, "counts": COUNTS}}


def gradients(model):
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def process(rank, store, folder, convention, parts):
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    model = llama()

    def patch(model, **more):
        handle = raretok.patch(model, **PARTS[parts], **more)
        if parts == "agg":
            both = convention is of_tensor_parallel
            handle.criterion.begin_step([torch.cat([batch(0)[1], batch(1)[1]])] if both else [batch(rank)[1]])

    convention(model, rank, patch)
    torch.save(gradients(model), f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("parts", PARTS)
def test_two_processes_with_unequal_targets_train_as_one(tmp_path, convention, parts):
    arguments = (tmp_path / "store", tmp_path, convention, parts)
    multiprocessing.start_processes(process, arguments, nprocs=2, start_method="fork")
    model = llama()
    ids, targets = (torch.cat(each) for each in zip(batch(0), batch(1), strict=True))
    raretok.patch(model, **PARTS[parts])
    model_loss(model, ids, targets).backward()
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        torch.testing.assert_close(found, gradients(model), rtol=1e-9, atol=1e-12)


def own_means(rank, store, folder):
    """The losses of a model as it is, patched, and of an OutputLoss."""
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    found = []
    for patches in (False, True):
        model = llama()
        if patches:
            raretok.patch(model)
        found.append(model_loss(model, *batch(rank)).item())
    ids, targets = batch(rank)
    hidden, weight = llama().model(ids).last_hidden_state, llama().lm_head.weight
    found += [OutputLoss(processes=which)(hidden, weight, targets).item() for which in ("own", "all", None)]
    found.append(F.cross_entropy((hidden @ weight.T)[0], targets[0], reduction="sum").item() / 6)
    torch.save(torch.tensor(found), f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


def test_a_patched_model_has_its_own_mean_as_unpatched(tmp_path):
    multiprocessing.start_processes(own_means, (tmp_path / "store", tmp_path), nprocs=2, start_method="fork")
    for rank in range(2):
        own, patched, mean, all_, default, expected = torch.load(tmp_path / f"{rank}.pt", weights_only=True).tolist()
        assert patched == pytest.approx(own, rel=1e-6)
        assert mean == pytest.approx(own, rel=1e-6)
        # 12 targets in two processes are 6 for each.
        assert all_ == default == pytest.approx(expected, rel=1e-6)
        assert abs(all_ - own) > 0.5


def test_an_outputloss_has_its_own_default_again_after_the_patch():
    for given in (None, "all", "own"):
        criterion = OutputLoss(processes=given)
        with raretok.patch(llama(), criterion):
            assert criterion.processes == (given or "own")
        assert criterion.processes == given


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"processes": "none"}, "processes is 'none'; it must be 'all', 'own' or a process group"),
        ({"processes": 2}, "processes is 2; it must be 'all', 'own' or a process group"),
        ({"processes": "own", "loss": Contrastive()}, "Contrastive compares the targets of all processes; leave out"),
    ],
)
def test_wrong_processes_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        OutputLoss(**options)
    OutputLoss(**(options | {"processes": None}))
