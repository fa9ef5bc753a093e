"""`OutputLoss` in a training loop: counts, gates, losses, state, and errors."""

import copy
import io
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import safetensors.torch
import torch
from methods_by_name import build_method
from torch.distributed import checkpoint as distributed_checkpoint
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.nn import functional as F

from raretok import (
    AGG,
    AGPS,
    Adversarial,
    Contrastive,
    CosReg,
    CrossEntropy,
    Freeze,
    OutputLoss,
    PowerLawDecay,
    Softminus,
    Threshold,
    UnigramDivergence,
    Unlikelihood,
)
from raretok.methods import TrainingFacts
from raretok.output.output_layer import output_loss

TYPES, WIDTH = 13, 5
# Decreasing, so that large ids are rare.
COUNTS = [400, 300, 200, 100, 50, 40, 30, 20, 10, 4, 3, 2, 1]
EXACT = {"rtol": 0, "atol": 1e-12}


def batch(seed, shape=(2, 7), dtype=torch.float64):
    """hidden, weight, bias (all with gradient) and targets, two of them ignored."""
    generator = torch.Generator().manual_seed(seed)
    hidden, weight, bias = (
        torch.randn(*size, generator=generator, dtype=dtype).requires_grad_()
        for size in ((*shape, WIDTH), (TYPES, WIDTH), (TYPES,))
    )
    targets = torch.randint(TYPES, shape, generator=generator)
    targets.view(-1)[[1, -1]] = -100
    return hidden, weight, bias, targets


def gradients(loss, *leaves):
    return [loss.detach(), *torch.autograd.grad(loss, leaves)]


def assert_same(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, **EXACT)


@pytest.mark.parametrize("shape", [(2, 7), (9,)])
def test_without_parts_it_is_cross_entropy(shape):
    hidden, weight, bias, targets = batch(1, shape)
    criterion = OutputLoss()
    ours = gradients(criterion(hidden, weight, targets, bias=bias), hidden, weight, bias)
    plain = F.cross_entropy((hidden @ weight.T + bias).flatten(0, -2), targets.flatten())
    assert_same(ours, gradients(plain, hidden, weight, bias))
    torch.testing.assert_close(criterion.nll, plain.detach(), **EXACT)


def test_after_eval_and_without_gradient_every_method_is_cross_entropy():
    hidden, weight, bias, targets = batch(2)
    criterion = OutputLoss(Threshold(margin=0.1), gate=Freeze(part="bc", share=0.5), counts=COUNTS)
    plain = F.cross_entropy((hidden @ weight.T + bias).flatten(0, 1), targets.flatten())
    with torch.no_grad():
        torch.testing.assert_close(criterion(hidden, weight, targets, bias=bias), plain.detach(), **EXACT)
    assert_same(
        gradients(criterion.eval()(hidden, weight, targets, bias=bias), hidden, weight),
        gradients(plain, hidden, weight),
    )
    assert criterion.steps == 0


# Parts, and their config in the pipeline.
PARTS = {
    "smoothed": (
        {"loss": CrossEntropy(label_smoothing=0.1)},
        {"loss": {"name": "cross_entropy", "label_smoothing": 0.1}},
    ),
    "threshold": ({"loss": Threshold(margin=1)}, {"loss": {"name": "threshold", "margin": 1}}),
    "softminus": ({"loss": Softminus(margin=1)}, {"loss": {"name": "softminus", "margin": 1}}),
    "contrastive": ({"loss": Contrastive()}, {"loss": {"name": "contrastive"}}),
    "agg": ({"gate": AGG(alpha=2.5, memory=2)}, {"gate": {"name": "agg", "alpha": 2.5, "memory": 2}}),
    "agps": (
        {"gate": AGPS(rare_from=6, mu_1=40, mu_2=9)},
        {"gate": {"name": "agps", "rare_from": 6, "mu_1": 40, "mu_2": 9}},
    ),
    "freeze": ({"gate": Freeze(part="bc", share=0.5)}, {"gate": {"name": "freeze", "part": "bc", "share": 0.5}}),
    "cosreg": ({"penalty": CosReg()}, {"penalty": {"name": "cosreg"}}),
    "unlikelihood": ({"penalty": Unlikelihood()}, {"penalty": {"name": "unlikelihood"}}),
    "divergence": ({"penalty": UnigramDivergence(0.2)}, {"penalty": {"name": "unigram", "strength": 0.2}}),
    "adversarial": (
        {"perturbation": Adversarial(alpha=0.05), "training_temperature": 0.5},
        {"perturbation": {"name": "adversarial", "alpha": 0.05}, "training_temperature": 0.5},
    ),
    "combined": (
        {"loss": Threshold(margin=2), "gate": AGG(alpha=0.3, memory=2), "penalty": Unlikelihood()},
        {
            "loss": {"name": "threshold", "margin": 2},
            "gate": {"name": "agg", "alpha": 0.3, "memory": 2},
            "penalty": {"name": "unlikelihood"},
        },
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_it_equals_the_output_layer_with_the_gate_of_the_step(name):
    """Losses and gradients over five steps of two micro-batches, with counts that enter and leave the memory."""
    parts, settings = PARTS[name]
    criterion = OutputLoss(**parts, counts=COUNTS, special=(0,), targets_per_step=24)
    method = build_method(settings)
    facts = TrainingFacts(torch.tensor(COUNTS).numpy(), (0,), tokens_per_step=24, steps_per_epoch=50)
    if hasattr(method.penalty, "start"):
        method = replace(method, penalty=method.penalty.start(facts))
    state = method.gate.start(facts) if method.gate else None
    for step in range(5):
        micro = [batch(100 * step + k) for k in range(2)]
        real = torch.cat([targets[targets != -100] for *_, targets in micro])
        inputs = torch.randint(TYPES, (2, 7), generator=torch.Generator().manual_seed(step))
        if state:
            state.begin_step(real)
        criterion.begin_step([targets for *_, targets in micro])
        for hidden, weight, bias, targets in micro:
            ours = criterion(hidden, weight, targets, bias=bias, inputs=inputs)
            theirs = output_loss(
                method, state, hidden, weight, targets,
                inputs=inputs, bias=bias, padding=-100, normaliser=len(real), share=0.5,
            ).loss  # fmt: skip
            assert_same(gradients(ours, hidden, weight, bias), gradients(theirs, hidden, weight, bias))


def test_without_begin_step_every_call_is_a_step():
    alone, told = (OutputLoss(gate=AGG(alpha=0.3, memory=2), counts=COUNTS) for _ in range(2))
    for seed in range(4):
        hidden, weight, _, targets = batch(seed)
        told.begin_step(targets)
        assert_same(
            gradients(alone(hidden, weight, targets), hidden, weight),
            gradients(told(hidden, weight, targets), hidden, weight),
        )
    assert alone.steps == told.steps == 4
    assert alone.rare().tolist() == told.rare().tolist()


def test_micro_batches_add_up_to_the_whole_step():
    """Also if they have different numbers of targets."""
    hidden, weight, bias, targets = batch(3, (4, 7))
    targets[0] = -100
    whole = OutputLoss(gate=AGG(alpha=0.3, memory=9), counts=COUNTS)
    parts = OutputLoss(gate=AGG(alpha=0.3, memory=9), counts=COUNTS)
    parts.begin_step([targets[:2], targets[2:]])
    loss = parts(hidden[:2], weight, targets[:2], bias=bias) + parts(hidden[2:], weight, targets[2:], bias=bias)
    assert_same(
        gradients(loss, hidden, weight, bias),
        gradients(whole(hidden, weight, targets, bias=bias), hidden, weight, bias),
    )


GATES = [
    {"gate": AGG(alpha=0.3, memory=3)},
    # With epochs of three steps, after which counting stops.
    {"gate": AGG(alpha=2.0, static=True), "targets_per_step": 400},
    {"gate": Freeze(part="bc", share=0.5, until=5)},
    {"penalty": UnigramDivergence(1.0, until=5)},
]


def losses(criterion, seeds):
    """Losses and gradients of a step for each seed."""
    for seed in seeds:
        hidden, weight, _, targets = batch(seed)
        yield gradients(criterion(hidden, weight, targets), weight)


@pytest.mark.parametrize("parts", GATES)
@pytest.mark.parametrize("broken_after", [2, 4])
def test_a_saved_state_continues_exactly(parts, broken_after):
    unbroken = list(losses(OutputLoss(**parts, counts=COUNTS), range(8)))
    first = OutputLoss(**parts, counts=COUNTS)
    list(losses(first, range(broken_after)))
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second = OutputLoss(**parts, counts=COUNTS)
    second.load_state_dict(torch.load(file, weights_only=True))
    for ours, theirs in zip(losses(second, range(broken_after, 8)), unbroken[broken_after:], strict=True):
        assert_same(ours, theirs)


@pytest.mark.parametrize("parts", GATES)
def test_a_state_in_memory_is_a_copy(parts):
    """A training that rolls back to it repeats its steps exactly."""
    criterion = OutputLoss(**parts, counts=COUNTS)
    list(losses(criterion, range(2)))
    state = criterion.state_dict()
    first = list(losses(criterion, range(2, 5)))
    criterion.load_state_dict(state)
    for ours, theirs in zip(losses(criterion, range(2, 5)), first, strict=True):
        assert_same(ours, theirs)


def test_a_new_object_continues_from_safetensors():
    trained, new = (OutputLoss(gate=AGG(alpha=0.3, memory=3), counts=COUNTS) for _ in range(2))
    list(losses(trained, range(4)))
    new.load_state_dict(safetensors.torch.load(safetensors.torch.save(trained.state_dict())))
    for ours, theirs in zip(losses(new, range(4, 8)), losses(trained, range(4, 8)), strict=True):
        assert_same(ours, theirs)


@pytest.mark.filterwarnings("ignore:torch.distributed is")
def test_a_distributed_checkpoint_is_never_loaded_without_the_counts(tmp_path):
    """It fills the tensors of a new object, which must have the size of the saved ones."""
    trained, new, other = (OutputLoss(gate=AGG(alpha=0.3, memory=3), counts=COUNTS) for _ in range(3))
    list(losses(trained, range(4)))
    distributed_checkpoint.save(trained.state_dict(), checkpoint_id=tmp_path)
    with pytest.raises(distributed_checkpoint.api.CheckpointException, match="Size mismatch"):
        distributed_checkpoint.load(new.state_dict(), checkpoint_id=tmp_path)
    list(losses(other, range(10, 16)))
    state = other.state_dict()
    distributed_checkpoint.load(state, checkpoint_id=tmp_path)
    other.load_state_dict(state)
    assert other.steps == 4
    for ours, theirs in zip(losses(other, range(4, 8)), losses(trained, range(4, 8)), strict=True):
        assert_same(ours, theirs)


@pytest.mark.parametrize(
    "parts",
    [
        {"gate": AGG(alpha=np.float64(0.3), memory=np.int64(3))},
        {"penalty": UnigramDivergence(torch.tensor(1.0), until=np.int64(5))},
    ],
)
def test_a_state_has_python_numbers(parts):
    state = io.BytesIO()
    torch.save(OutputLoss(**parts, counts=COUNTS).state_dict(), state)
    state.seek(0)
    OutputLoss(**parts, counts=COUNTS).load_state_dict(torch.load(state, weights_only=True))


def test_a_state_saved_before_the_first_step_has_no_counts():
    """AGG without `targets_per_step` has not started yet."""
    hidden, weight, _, targets = batch(8)
    criterion = OutputLoss(gate=AGG(alpha=0.3, memory=3), counts=COUNTS)
    start = copy.deepcopy(criterion.state_dict())
    first = gradients(criterion(hidden, weight, targets), weight)
    criterion(hidden, weight, batch(9)[3])
    criterion.load_state_dict(start)
    assert criterion.steps == 0
    assert_same(gradients(criterion(hidden, weight, targets), weight), first)


def test_a_state_of_other_parts_is_refused():
    """Counts of three steps, read as those of four, would silently be divided by the wrong number."""
    saved = OutputLoss(gate=AGG(alpha=1, memory=3), counts=COUNTS).state_dict()
    OutputLoss(gate=AGG(alpha=1.0, memory=3), counts=COUNTS).load_state_dict(saved)
    for other, shown in ((AGG(alpha=1.0, memory=4), "gate=AGG"), (Freeze("b"), "gate=Freeze"), (None, "nothing that")):
        words = (
            rf"belongs to gate=AGG\(alpha=1, memory=3, .*, but this OutputLoss has {shown}.*; give it the same, or rem"
        )
        with pytest.raises(ValueError, match=words):
            OutputLoss(gate=other, counts=COUNTS).load_state_dict(saved)
    with pytest.raises(ValueError, match="a vocabulary of 13 types, but counts has 12; give the counts of that"):
        OutputLoss(gate=AGG(alpha=1.0, memory=3), counts=COUNTS[1:]).load_state_dict(saved)


def test_a_state_saved_within_a_step_is_refused():
    """The object that loads it would count the rest as a step of its own."""
    hidden, weight, _, targets = batch(1)
    criterion, new = (OutputLoss(gate=AGG(alpha=0.3, memory=3), counts=COUNTS) for _ in range(2))
    criterion.begin_step([targets, targets])
    new.load_state_dict(criterion.state_dict())
    criterion(hidden, weight, targets)
    with pytest.raises(ValueError, match="saved within step 1, after some of the micro-batches that begin_step"):
        new.load_state_dict(criterion.state_dict())
    criterion(hidden, weight, targets)
    new.load_state_dict(criterion.state_dict())


def test_what_counts_no_steps_has_no_state():
    """So a model with such a loss as a submodule has the keys of the model without it."""
    plain, other = (torch.nn.Sequential(torch.nn.Linear(2, 2), loss) for loss in (OutputLoss(), torch.nn.Identity()))
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), OutputLoss(Threshold(margin=1.0)))
    for source, target in ((plain, model), (model, other), (other, model)):
        target.load_state_dict(source.state_dict())
        assert get_model_state_dict(target).keys() == source.state_dict().keys() == {"0.weight", "0.bias"}
        set_model_state_dict(target, source.state_dict())
    counting = torch.nn.Sequential(torch.nn.Linear(2, 2), OutputLoss(gate=Freeze("b"), counts=COUNTS))
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "1._extra_state"'):
        counting.load_state_dict(plain.state_dict())


@pytest.mark.parametrize("parts", [parts for parts, _ in PARTS.values()] + GATES, ids=str)
def test_a_default_device_changes_nothing(parts):
    """What is on the CPU stays there; nothing can be computed on `meta`."""
    found = []
    for device in ("cpu", "meta"):
        steps = [batch(seed) for seed in range(3)]
        with torch.device(device):
            criterion = OutputLoss(**{"targets_per_step": 12} | parts, counts=COUNTS, ignore_index=-100)
            for hidden, weight, bias, targets in steps:
                criterion.begin_step(targets)
                loss = criterion(hidden, weight, targets, bias=bias, inputs=targets.clamp_min(0))
                found += gradients(loss, hidden, weight)
            if criterion.state_dict():
                criterion.load_state_dict(criterion.state_dict())
    assert_same(found[:9], found[9:])


@pytest.mark.parametrize("told", [None, 12])
def test_before_the_first_step_agg_has_no_rare_types(told):
    hidden, weight, _, targets = batch(10)
    criterion = OutputLoss(gate=AGG(alpha=0.3, memory=3), counts=COUNTS, targets_per_step=told)
    assert criterion.rare() is None
    criterion(hidden, weight, targets)
    assert 0 < criterion.rare().sum() < TYPES
    assert OutputLoss(gate=Freeze(part="b", share=0.5), counts=COUNTS).rare().sum() == 6


def test_a_gate_that_has_stopped_counting_keeps_no_targets():
    criterion = OutputLoss(gate=AGG(alpha=2.0, static=True), counts=COUNTS, targets_per_step=400)
    hidden, weight, _, targets = batch(4)
    kept = []
    for _ in range(5):
        criterion(hidden, weight, targets)
        kept.append(len(criterion._state().get("gate.recent_sizes", ())))
    assert kept == [1, 2, 3, 0, 0]


def test_a_penalty_stops_after_its_last_step():
    criterion = OutputLoss(penalty=UnigramDivergence(5.0, until=2), counts=COUNTS)
    hidden, weight, _, targets = batch(4)
    plain = OutputLoss()(hidden, weight, targets).item()
    values = [criterion(hidden, weight, targets).item() for _ in range(3)]
    assert values[0] == values[1] != plain
    assert values[2] == plain


def test_low_precision_and_tied_weights():
    """With a bfloat16 model and with autocast, the gated gradient is the float32 one to bfloat16's precision."""
    hidden, weight, _, targets = batch(5, (4, 32), torch.float32)
    exact = gradients(OutputLoss(gate=AGG(alpha=0.3, memory=9), counts=COUNTS)(hidden, weight, targets), hidden, weight)
    low = [tensor.detach().bfloat16().requires_grad_() for tensor in (hidden, weight)]
    criterion = OutputLoss(gate=AGG(alpha=0.3, memory=9), counts=COUNTS)
    with torch.autocast("cpu", torch.bfloat16):
        cast = gradients(criterion(hidden, weight, targets), hidden, weight)
    criterion = OutputLoss(gate=AGG(alpha=0.3, memory=9), counts=COUNTS)
    loss = criterion(*low, targets)
    assert loss.dtype == torch.float32
    for found in (cast, gradients(loss, *low)):
        for a, b in zip(found, exact, strict=True):
            torch.testing.assert_close(a.float(), b, rtol=0.05, atol=2e-3)
    ids = torch.arange(14).view(2, 7) % TYPES
    tied = torch.randn(TYPES, WIDTH, dtype=torch.float64, requires_grad=True)
    OutputLoss()(F.embedding(ids, tied), tied, (ids + 1) % TYPES).backward()
    other = tied.detach().clone().requires_grad_()
    F.cross_entropy((F.embedding(ids, other) @ other.T).flatten(0, 1), ((ids + 1) % TYPES).flatten()).backward()
    torch.testing.assert_close(tied.grad, other.grad, **EXACT)


def test_a_batch_without_targets_has_loss_0():
    hidden, weight, _, targets = batch(6)
    criterion = OutputLoss(Threshold(margin=1), gate=AGG(alpha=0.05, memory=2), counts=COUNTS, targets_per_step=12)
    loss = criterion(hidden, weight, torch.full_like(targets, -100))
    assert [value.abs().max().item() for value in gradients(loss, hidden, weight)] == [0, 0, 0]
    assert criterion.nll == 0


def test_a_first_step_without_targets_does_not_set_targets_per_step():
    """For example, if the first texts are all prompt; the next step counts as the first."""
    hidden, weight, _, targets = batch(6)
    late, usual = (OutputLoss(gate=AGG(alpha=0.3, memory=2), counts=COUNTS) for _ in range(2))
    late(hidden, weight, torch.full_like(targets, -100))
    assert late.rare() is None
    for _ in range(3):
        assert_same(
            gradients(late(hidden, weight, targets), hidden, weight),
            gradients(usual(hidden, weight, targets), hidden, weight),
        )
    assert late._state()["targets_per_step"] == 12


SENTENCES = [
    (lambda: OutputLoss(gate=AGG(alpha=0.1)), "^AGG needs counts="),
    (lambda: OutputLoss(penalty=UnigramDivergence(1.0)), "^UnigramDivergence needs counts="),
    (lambda: OutputLoss(PowerLawDecay()), "^PowerLawDecay needs counts="),
    (lambda: OutputLoss(Contrastive(), gate=AGG(alpha=0.1), counts=COUNTS), "contrastive loss do not combine"),
    (lambda: OutputLoss(gate=AGG(alpha=1e-9), counts=COUNTS, targets_per_step=10), "makes no type rare"),
    (
        lambda: OutputLoss(gate=AGG(alpha=1e9), counts=COUNTS, targets_per_step=10),
        "^AGG's alpha is .* every type rare",
    ),
    (lambda: OutputLoss(gate=AGPS(rare_from=99, mu_1=1, mu_2=1), counts=COUNTS), "rare_from is 99"),
    (lambda: OutputLoss(gate=Freeze(), counts=COUNTS), "part='b', 'c' or 'bc'"),
    (lambda: OutputLoss("threshold"), "loss= is 'threshold', which is no loss; give one of raretok's parts"),
    (lambda: OutputLoss(AGG(alpha=1.0), counts=COUNTS), "is no loss"),
    (lambda: OutputLoss(Threshold), r"^loss= is the class Threshold; give an instance, Threshold\(...\)$"),
    (lambda: OutputLoss(special=[99]), "^special= names types of counts=, which is missing"),
    (lambda: OutputLoss(counts=COUNTS, special=0), r"^special is 0; give a list of ids, such as \[0\]$"),
    *(
        (
            lambda parts=parts: OutputLoss(**parts, counts=[0, 5, 0, 2], special=[1, 3]),
            "^special has all types that occ",
        )
        for parts in ({"gate": AGG(0.1), "targets_per_step": 9}, {"loss": PowerLawDecay()})
    ),
    (lambda: OutputLoss(gate=AGG(alpha=1.0), counts=[0, 0]), "counts must be V whole numbers"),
    (lambda: OutputLoss(gate=AGG(alpha=1.0), counts=[0.5, 1]), "counts must be V whole numbers"),
    (lambda: OutputLoss(gate=AGG(alpha=1.0), counts=COUNTS, special=[13]), "special has 13, which is no id"),
    # A tokenizer without a padding id.
    (lambda: OutputLoss(gate=AGG(alpha=1.0), counts=COUNTS, special=[None]), "special has None, which is no id"),
    (lambda: OutputLoss(gate=AGG(alpha=1.0), counts=COUNTS, targets_per_step=0), "targets_per_step is 0"),
]


@pytest.mark.parametrize(("make", "words"), SENTENCES)
def test_incompatible_parts_and_values_are_refused(make, words):
    with pytest.raises(ValueError, match=words) as error:
        make()
    assert "\n" not in str(error.value)


def test_wrong_shapes_and_targets_are_refused():
    hidden, weight, _, targets = batch(7)
    criterion = OutputLoss(gate=AGG(alpha=0.3, memory=2), counts=COUNTS)
    with pytest.raises(ValueError, match="hidden is 2 x 7 x 5, but targets are 2 x 6; they must be 2 x 7"):
        criterion(hidden, weight, targets[:, 1:])
    with pytest.raises(ValueError, match="weight is 13 x 4; it must be V x 5"):
        criterion(hidden, weight[:, 1:], targets)
    with pytest.raises(ValueError, match="counts has 13 types, but weight has 12 rows"):
        criterion(hidden, weight[1:], targets)
    with pytest.raises(ValueError, match="a target is 13; it must be below 13"):
        criterion(hidden, weight, targets.clamp_min(0) + 13 * (targets >= 0))
    with pytest.raises(ValueError, match="bias is 12; it must be 13, one per row of weight"):
        criterion(hidden, weight, targets, bias=torch.zeros(12))
    for wrong, shown in (
        (targets.double(), "torch.float64"),
        (targets.bool(), "torch.bool"),
        (targets.numpy(), "ndarray"),
        (targets.tolist(), "list"),
    ):
        with pytest.raises(ValueError, match=f"targets are of type {shown}; give a tensor of token ids"):
            criterion(hidden, weight, wrong)
    for reduction in ("sum", "none"):
        with pytest.raises(ValueError, match=f"leave it out, or reduction='{reduction}'"):
            OutputLoss(reduction=reduction)(hidden, weight, targets, number=3)
    layer = torch.nn.Linear(WIDTH, TYPES)
    for arguments, words in (
        ((hidden, layer, targets), "weight is of type Linear; give a tensor, such as its weight"),
        (((hidden,), weight, targets), "hidden is of type tuple; give a tensor"),
    ):
        with pytest.raises(ValueError, match=words):
            criterion(*arguments)
    for wrong in (2.0, [1.0]):
        with pytest.raises(ValueError, match=f"token_weights is of type {type(wrong).__name__}; give a tensor"):
            criterion(hidden, weight, targets, token_weights=wrong)
    with pytest.raises(
        ValueError, match=r"a target is -100; .*, the number of rows of weight \(ignore_index is None\)$"
    ):
        OutputLoss(ignore_index=None)(hidden, weight, targets)
    with pytest.raises(ValueError, match="hidden is 5; it must be B x T x d or N x d"):
        criterion(hidden[0, 0], weight, targets[0, 0])
    assert criterion.steps == 0
    unlikelihood = OutputLoss(penalty=Unlikelihood())
    with pytest.raises(ValueError, match="Unlikelihood needs inputs="):
        unlikelihood(hidden, weight, targets)
    with pytest.raises(ValueError, match="Unlikelihood needs inputs="):
        unlikelihood(hidden.flatten(0, 1), weight, targets.flatten(), inputs=targets.flatten())
    for wrong in (targets.double(), targets.tolist()):
        with pytest.raises(ValueError, match=r"inputs are of type (torch\.float64|list); give a tensor of token ids"):
            unlikelihood(hidden, weight, targets, inputs=wrong)
    for wrong in (-1, 13):
        with pytest.raises(ValueError, match=f"an input is {wrong}; inputs must be ids from 0 to 12, or -100 for"):
            unlikelihood(hidden, weight, targets, inputs=torch.full_like(targets, wrong))
    assert unlikelihood.steps == 0
    criterion.begin_step(targets)
    criterion(hidden, weight, targets)
    with pytest.raises(ValueError, match="begin_step did not announce the targets"):
        criterion(hidden, weight, targets)
    # Unshifted labels are as many, and would be counted in place of the targets.
    for announced, is_right in ((targets.flatten().int(), True), (targets.roll(1, dims=1), False)):
        criterion.begin_step(announced)
        with nullcontext() if is_right else pytest.raises(ValueError, match="begin_step did not announce the targets"):
            criterion(hidden, weight, targets)
    with pytest.raises(ValueError, match="announced targets are of type dict; give a tensor of token ids"):
        criterion.begin_step([{"labels": targets}])
    # A refused step is not counted, and does not start the gate.
    criterion = OutputLoss(gate=AGG(alpha=0.3, memory=2), counts=COUNTS)
    criterion.begin_step([])
    with pytest.raises(ValueError, match="begin_step did not announce the targets"):
        criterion(hidden, weight, targets)
    for wrong in (-1, 13):
        criterion = OutputLoss(gate=AGG(alpha=0.3, memory=2), counts=COUNTS)
        criterion.begin_step([targets, targets.masked_fill(targets == -100, wrong)])
        with pytest.raises(ValueError, match=f"a target is {wrong}; it must be below 13"):
            criterion(hidden, weight, targets)
        assert criterion.steps == 0


def test_announced_targets_that_were_never_passed_give_a_warning():
    hidden, weight, _, targets = batch(8)
    criterion = OutputLoss()
    criterion.begin_step([targets, targets])
    with pytest.warns(UserWarning, match="called twice without a call between them; is the loss used"):
        criterion.begin_step([targets, targets])
    criterion(hidden, weight, targets)
    with pytest.warns(UserWarning, match=f"announced {targets.numel()} more targets for step 1 than were passed"):
        criterion.begin_step(targets)
    criterion(hidden, weight, targets)
    criterion.begin_step(targets)


def test_it_prints_its_parts():
    criterion = OutputLoss(Threshold(margin=1), penalty=CosReg())
    assert repr(criterion) == (
        "OutputLoss(loss=Threshold(margin=1, alpha=None, detach_under=False), penalty=CosReg(gamma=1.0))"
    )
    criterion = OutputLoss(training_temperature=0.5, counts=COUNTS, special=[0], ignore_index=-1, observe=True)
    assert "0.0), training_temperature=0.5, special=(0,), ignore_index=-1, observe=True)" in repr(criterion)
