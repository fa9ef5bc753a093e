"""`patch`: one line that makes an `OutputLoss` the training loss of a causal language model of transformers."""

import inspect
import types
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch.nn import functional as F

from raretok.checks import check_ids
from raretok.losses import OutputLoss, uncapped_part
from raretok.methods.counting import summed

__all__ = ["NoEffectWarning", "Patched", "patch"]

# Attributes of a model's config that multiply or divide its logits, and the one that caps them.
SCALES = ("logit_scale", "output_multiplier", "lm_head_multiplier", "logits_scaling")
SOFT_CAP = "final_logit_softcapping"
# Size of the tiny batch on which the patched model is compared with the original.
ROWS, LENGTH = 2, 8
IGNORED = -100
# Where a patched model keeps its `Patched`, so that a copy of the model has its own.
PATCH = "_raretok_patch"


class NoEffectWarning(UserWarning):
    """A method has no effect on what is trained.

    `warnings.simplefilter("error", NoEffectWarning)` makes it an error.
    """


def patch(model: torch.nn.Module, loss: object | None = None, **options) -> "Patched":
    """Make `model(input_ids, labels=labels).loss` the loss of an `OutputLoss`, without allocating all logits.

        patched = raretok.patch(model, Threshold(margin=1.0))

    Only training changes: after `model.eval()`, without gradients or without labels, the model computes as before. In
    training, `outputs.logits` are those of the last position. Labels are shifted as the model shifts them,
    `num_items_in_batch` and `shift_labels` keep their meaning, and the model's auxiliary losses stay. A scale or soft
    cap of the logits, a bias, and tied or padded embeddings are supported. The patched model is checked against the
    original on a tiny batch of random ids.

    Whatever wraps, adapts, shards, copies or resizes the model may do so before or after. Warns once
    (`NoEffectWarning`) if the model then trains without labels reaching it.

    Args:
        model: a causal language model of transformers, also one wrapped by PEFT.
        loss: an `OutputLoss` with reduction `mean`, or its first argument; default: cross-entropy.
        options: further arguments of `OutputLoss`, unless `loss` is one.

    Returns a handle, which is also a context manager. Raises ValueError if the model's logits are not its last hidden
    vectors times its output embedding (apart from a scale and a soft cap), if the output embedding is quantised, has
    a LoRA adapter or no weights yet, and if the model is already patched. `torch.nn.DataParallel` raises it for a
    patched model.
    """
    if isinstance(loss, OutputLoss):
        if options:
            raise ValueError(
                f"{next(iter(options))}= is an option of OutputLoss; give it to the OutputLoss that you pass"
            )
        criterion = loss
    else:
        criterion = OutputLoss(loss, **options)
    if criterion.reduction != "mean":
        raise ValueError(f"the loss of a model is one number; give an OutputLoss with reduction='mean', not {loss}")
    if criterion._ignore_index != IGNORED:
        raise ValueError(
            f"ignore_index is {criterion._ignore_index}; models of transformers ignore labels of {IGNORED}"
        )
    if hasattr(model, "get_base_model"):
        model = model.get_base_model()
    if not hasattr(model, "get_output_embeddings") or not hasattr(model, "config"):
        raise ValueError(f"{type(model).__name__} is not a causal language model of transformers")
    if _weight(model).is_meta:
        raise ValueError(f"{type(model).__name__} has no weights yet (device meta); load them, then patch it")
    earlier = patch_of(model)
    if earlier is not None:
        raise ValueError(
            f"{type(model).__name__} is already patched; call undo() of the handle that patch returned, then patch "
            "again"
        )
    patched = Patched(model, criterion)
    try:
        patched._check()
    except BaseException:
        patched.undo()
        raise
    return patched


def patch_of(model: torch.nn.Module) -> "Patched | None":
    """The handle of a patched model, also one that PEFT has wrapped since, or None."""
    if hasattr(model, "get_base_model"):
        model = model.get_base_model()
    patched = vars(model).get(PATCH)
    return patched if patched is not None and patched._is_active else None


class Patched:
    """A model changed by `patch`; leaving it as a context manager undoes the change.

    `criterion` is the `OutputLoss`: log its `nll`, and save its `state_dict()` if it has a gate.

    Args:
        model: a causal language model of transformers.
        criterion: its loss.
    """

    def __init__(self, model: torch.nn.Module, criterion: OutputLoss):
        self.model, self.criterion = model, criterion
        # Arguments of the current forward pass, if it is intercepted, and its loss.
        self._call: dict | None = None
        self._loss: torch.Tensor | None = None
        # Whether the forward pass runs, and whether the body has trained.
        self._is_inside = self._has_trained = False
        self._has_warned, self._is_active, self._steps = False, True, criterion.steps
        self._chooses_processes = criterion.processes is None
        earlier = vars(model).get(PATCH)
        if earlier is None:
            self._before = vars(model).get("forward")
            self._own_forward = model.forward
            self._forward = types.MethodType(_intercepting(inspect.signature(self._own_forward)), model)
            model.forward = self._forward
        else:
            # What wrapped the model before the earlier patch was undone still calls its forward method.
            self._before, self._own_forward, self._forward = earlier._before, earlier._own_forward, earlier._forward
        self._names = tuple(inspect.signature(self._own_forward).parameters)
        setattr(model, PATCH, self)
        model._replicate_for_data_parallel = _no_replica
        # A trainer that computes a loss from the body's hidden vectors never comes to the forward method.
        body = model.base_model
        self._hook = None if body is model else body.register_forward_pre_hook(self._see_body)

    def undo(self) -> None:
        """Restore the original model; warns if it trained, but no step was counted.

        A wrapper that the forward method got since, such as accelerate's for autocast, stays.
        """
        if not self._is_active:
            return
        self._is_active, model = False, self.model
        if self._hook is not None:
            self._hook.remove()
        vars(model).pop("_replicate_for_data_parallel", None)
        if self._chooses_processes:
            self.criterion.processes = None
        if vars(model).get("forward") == self._forward:
            del vars(model)[PATCH]
            if self._before is None:
                del vars(model)["forward"]
            else:
                vars(model)["forward"] = self._before
        self.warn_if_unused()

    def warn_if_unused(self) -> None:
        """Warn if the model has trained, but no step was counted."""
        if self._has_trained and self.criterion.steps == self._steps:
            warnings.warn(
                f"no step was counted while {type(self.model).__name__} was patched and trained: the method had no "
                "effect; call the model with labels= in training",
                NoEffectWarning,
                stacklevel=3,
            )

    def __enter__(self) -> "Patched":
        return self

    def __exit__(self, *_) -> None:
        self.undo()

    def begin_step(self, labels: torch.Tensor | Iterable[torch.Tensor]) -> None:
        """As `OutputLoss.begin_step`, for labels as the model gets them; gates need it with gradient accumulation.

        Args:
            labels: those of each micro-batch of the next step, B x T, not shifted.
        """
        batches = [labels] if isinstance(labels, torch.Tensor) else list(labels)
        for batch in batches:
            check_ids("labels", batch)
        self.criterion.begin_step([_shifted(batch) for batch in batches])

    def _run(self, arguments: tuple, named: dict):
        """The model's forward pass; when it trains on labels, the head's input becomes the loss."""
        if not self._is_active:
            return self._own_forward(*arguments, **named)
        call = dict(zip(self._names, arguments, strict=False)) | named
        trains = self.model.training and torch.is_grad_enabled()
        self._is_inside = True
        try:
            if not trains or call.get("labels") is None:
                if trains:
                    self._has_trained = True
                    self._warn(_cause(call))
                return self._own_forward(*arguments, **named)
            with self._intercepting(call):
                return self._own_forward(*arguments, **named)
        finally:
            self._is_inside = False

    @contextmanager
    def _intercepting(self, call: dict) -> Iterator[None]:
        """Within it, the head computes the loss of a call, which the model's loss function then returns.

        Hooks last for one pass, because the head may be another module in the next: PEFT and resizing replace it.
        """
        head, own_loss = _linear(self.model), self.model.loss_function
        self._call, self._loss = call, None

        def loss_function(*arguments, **named):
            return own_loss(*arguments, **named) if self._loss is None else self._loss

        # After hooks that gather the weights of a sharded head; before those that look at its output.
        hooks = [
            head.register_forward_pre_hook(self._see_head),
            head.register_forward_hook(lambda module, inputs, logits: logits.detach(), prepend=True),
        ]
        try:
            with _loss_function_of(self.model, loss_function):
                yield
        finally:
            for hook in hooks:
                hook.remove()
            self._call = self._loss = None

    def _see_head(self, head: torch.nn.Module, inputs: tuple) -> torch.Tensor:
        """Compute the loss from the head's input, and leave it the last position."""
        hidden = inputs[0]
        # accelerate's hook of a model with a `device_map` moves it only later.
        self._loss = self._loss_of(hidden.to(head.weight.device), head.weight, head.bias)
        return hidden[:, -1:].detach()

    def _see_body(self, body: torch.nn.Module, inputs: tuple) -> None:
        """Warn if the body trains outside of the patched forward pass."""
        if not self._is_inside and body.training and torch.is_grad_enabled():
            self._has_trained = True
            self._warn(
                f"the body of {type(self.model).__name__} trains, but its patched forward pass is not called. TRL's "
                "SFTTrainer does so, because it computes a loss of its own: derive from raretok.hf.PatchedTrainer, too"
            )

    def _warn(self, cause: str) -> None:
        """Warn once that the method has no effect."""
        if not self._has_warned:
            warnings.warn(f"the method has no effect: {cause}", NoEffectWarning, stacklevel=5)
        self._has_warned = True

    def _loss_of(self, hidden, weight, bias) -> torch.Tensor:
        call, criterion = self._call, self.criterion
        labels, targets = call["labels"], targets_of(call)
        if hidden.shape[:-1] != targets.shape:
            raise ValueError(
                f"the head reads {tuple(hidden.shape[:-1])} positions, but labels are {tuple(targets.shape)}; leave "
                f"out logits_to_keep, or give labels[:, -{hidden.shape[1]}:]"
            )
        number, inputs = call.get("num_items_in_batch"), _read(call)
        if number is not None and criterion._parts.gate is not None and criterion._told is None:
            # Some models of transformers count the labels before the shift.
            own = torch.stack([(targets != IGNORED).sum(), (labels != IGNORED).sum()])
            if number not in (*own, *summed(own.clone(), criterion._group)):
                raise ValueError(
                    f"this micro-batch has {int(own[0])} of the step's {int(number)} targets, and the gate counts "
                    "those of the whole step; call begin_step before each step"
                )
        if inputs is not None and inputs.shape != targets.shape:
            inputs = None
        if isinstance(number, torch.Tensor):
            # `Trainer` has it on the first device of the model.
            number = number.to(weight.device)
        documents = None if inputs is None else _documents(call, inputs)
        return criterion(hidden, weight, targets, bias=bias, inputs=inputs, documents=documents, number=number)

    def _check(self) -> None:
        """Find the model's scale and soft cap; raises ValueError if the loss then differs from the model's own."""
        model, name, weight = self.model, type(self.model).__name__, _weight(self.model)
        generator = torch.Generator().manual_seed(0)
        ids = torch.randint(weight.shape[0], (ROWS, LENGTH), generator=generator).to(weight.device)
        training = {module: module.training for module in model.modules()}
        criterion, raw, losses, own_loss = self.criterion, [], [], model.loss_function
        hook = _linear(model).register_forward_hook(lambda module, inputs, output: raw.append(output))

        def loss_function(*arguments, **named):
            losses.append(own_loss(*arguments, **named))
            return losses[-1]

        try:
            model.eval()
            # Calls of the module and not of its forward method, because hooks gather weights that are sharded.
            with torch.no_grad():
                with _loss_function_of(model, loss_function):
                    own = model(input_ids=ids, labels=ids)
                if not raw or not losses:
                    raise ValueError(
                        f"{name} does not call its output embedding and loss_function in the usual way; see its code"
                    )
                scale, soft_cap = _change_of_logits(model, raw[-1], own.logits)
                self.criterion = OutputLoss(logit_scale=scale, soft_cap=soft_cap)
                with self._intercepting({"labels": ids, "input_ids": ids}):
                    loss = model(input_ids=ids, labels=ids).loss
        finally:
            hook.remove()
            self.criterion = criterion
            for module, was in training.items():
                module.training = was
        # Models compute their losses in float32.
        tolerance = max(_tolerance(weight.dtype), _tolerance(own.loss.dtype))
        if not torch.isclose(loss.float(), own.loss.float(), rtol=tolerance):
            raise ValueError(
                f"the loss of {name} is {own.loss.item():.6g} on a tiny batch, but OutputLoss gives {loss.item():.6g}; "
                "its loss is not the mean cross-entropy of shifted labels"
            )
        if soft_cap is not None and (found := uncapped_part(criterion._parts)):
            raise ValueError(f"{name} has a soft cap, which does not combine with {found}; leave that out")
        if criterion.logit_scale not in (1.0, scale) or criterion.soft_cap not in (None, soft_cap):
            raise ValueError(
                f"logit_scale={criterion.logit_scale} and soft_cap={criterion.soft_cap}, but {name} has {scale} and "
                f"{soft_cap}; leave both out, since patch finds them"
            )
        criterion.logit_scale, criterion.soft_cap = scale, soft_cap
        if self._chooses_processes:
            # As the model's own loss; trainers then average or weight it.
            criterion.processes = "own"


def _intercepting(signature: inspect.Signature):
    """A forward method of a patched model with the original signature, which `Trainer` and `generate` inspect.

    It finds the patch on the model that it is called on. It has no `__wrapped__`, which accelerate would unwrap.
    """

    def forward(self, *arguments, **named):
        patched = vars(self)[PATCH]
        return patched._run(arguments, named)

    of_model = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    forward.__signature__ = signature.replace(parameters=[of_model, *signature.parameters.values()])
    return forward


@contextmanager
def _loss_function_of(model: torch.nn.Module, function) -> Iterator[None]:
    """Within it, a model of transformers has another `loss_function`."""
    before = vars(model).get("_loss_function")
    model.loss_function = function
    try:
        yield
    finally:
        if before is None:
            del vars(model)["_loss_function"]
        else:
            vars(model)["_loss_function"] = before


def _cause(call: dict) -> str:
    """Why a forward pass in training has no labels, and what to do."""
    if call.get("num_items_in_batch") is not None:
        return (
            "Trainer keeps the labels and computes a loss from the logits; leave out compute_loss_func, and replace "
            "label_smoothing_factor by CrossEntropy(label_smoothing=...)"
        )
    return (
        "the model trains without labels, so its loss is computed elsewhere, from its logits; call it with labels= and "
        "train on the loss that it returns"
    )


def _no_replica() -> None:
    """Replaces the method that `nn.DataParallel` copies a model with; the copies would all call the original."""
    raise ValueError(
        "torch.nn.DataParallel does not work with a patched model; start the script with torchrun, one process per GPU"
    )


def _linear(model: torch.nn.Module) -> torch.nn.Linear:
    """The output embedding, also if PEFT wraps it; raises ValueError unless it is a plain linear layer."""
    head = model.get_output_embeddings()
    if hasattr(head, "modules_to_save"):
        active = [name for name in head.active_adapters if name in head.modules_to_save]
        is_own = head.disable_adapters or not active
        head = head.original_module if is_own else head.modules_to_save[active[0]]
    if head is None:
        raise ValueError(
            f"{type(model).__name__} has no output embedding; patch the model that has one, such as that of "
            "AutoModelForCausalLM"
        )
    # Sharded and parametrised layers have other classes, with this same forward method.
    if not isinstance(head, torch.nn.Linear) or type(head).forward is not torch.nn.Linear.forward:
        remedy = "leave the head out of quantisation"
        if type(head).__module__.startswith("peft."):
            remedy = (
                "leave it out of the adapter with LoraConfig(exclude_modules=['lm_head']), or train it whole with "
                "modules_to_save=['lm_head'] in place of target_modules"
            )
        raise ValueError(
            f"the output embedding of {type(model).__name__} is a {type(head).__module__}.{type(head).__name__}, not "
            f"a torch.nn.Linear; {remedy}"
        )
    return head


def _weight(model: torch.nn.Module) -> torch.Tensor:
    """The output embedding, V x d."""
    return _linear(model).weight


def _change_of_logits(model, raw: torch.Tensor, logits: torch.Tensor) -> tuple[float, float | None]:
    """Scale and soft cap from the config that turn the head's output into the model's logits; ValueError if none do."""
    config = model.config.get_text_config()
    numbers = [getattr(config, name, None) for name in SCALES]
    scales = [scale for n in numbers if isinstance(n, int | float) and n for scale in (float(n), 1 / n)]
    # Values from the config come first, because small logits do not show a soft cap.
    for soft_cap in dict.fromkeys((getattr(config, SOFT_CAP, None), None)):
        for scale in (*scales, 1.0):
            z = raw.double() * scale
            z = z if soft_cap is None else soft_cap * (z / soft_cap).tanh()
            if (z - logits).abs().max() <= _tolerance(raw.dtype) * logits.abs().max():
                return scale, soft_cap
    raise ValueError(
        f"the logits of {type(model).__name__} are not its last hidden vectors times its output embedding, and no "
        "scale or soft cap in its config explains the difference"
    )


def _tolerance(dtype: torch.dtype) -> float:
    """Relative tolerance for logits and losses in a model's precision."""
    return {torch.float32: 1e-4, torch.float64: 1e-9}.get(dtype, 3e-2)


def _read(call: dict) -> torch.Tensor | None:
    """The ids that the model reads, B x T, or None; masked ones are replaced by the first that is not masked.

    So padding on the left is none of the earlier tokens of `Unlikelihood`.
    """
    ids, mask = call.get("input_ids"), call.get("attention_mask")
    if ids is None or mask is None or mask.shape != ids.shape:
        return ids
    first = mask.long().argmax(dim=1, keepdim=True)
    return ids.where(mask.bool(), ids.gather(1, first))


def _documents(call: dict, inputs: torch.Tensor) -> torch.Tensor | None:
    """The document of each input, B x T: positions count anew where one begins; None if no positions are given."""
    places = call.get("position_ids")
    if places is None or places.dim() != 2:
        return None
    places = places.expand_as(inputs)
    starts = F.pad(places[:, 1:] <= places[:, :-1], (1, 0))
    return starts.cumsum(dim=1)


def targets_of(batch: dict) -> torch.Tensor:
    """The targets of a batch as the model gets it, B x T: its `shift_labels`, or its labels, shifted."""
    given = batch.get("shift_labels")
    return _shifted(batch["labels"]) if given is None else given


def _shifted(labels: torch.Tensor) -> torch.Tensor:
    """The label that each position predicts: B x T -> B x T, ignored at the last position."""
    return F.pad(labels[:, 1:], (0, 1), value=IGNORED)
