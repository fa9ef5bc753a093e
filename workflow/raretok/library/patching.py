"""`patch`: one line that makes an `OutputLoss` the training loss of a causal language model of transformers."""

import inspect
from collections.abc import Iterable

import torch
from torch.nn import functional as F

from raretok.library.checks import check_ids
from raretok.library.losses import OutputLoss, uncapped_part
from raretok.methods.counting import summed

__all__ = ["Patched", "patch"]

# Attributes of a model's config that multiply or divide its logits, and the one that caps them.
SCALES = ("logit_scale", "output_multiplier", "lm_head_multiplier", "logits_scaling")
SOFT_CAP = "final_logit_softcapping"
# Size of the tiny batch on which the patched model is compared with the original.
ROWS, LENGTH = 2, 8
IGNORED = -100


def patch(model: torch.nn.Module, loss: object | None = None, **options) -> "Patched":
    """Make `model(input_ids, labels=labels).loss` the loss of an `OutputLoss`, without allocating all logits.

        patched = raretok.patch(model, Threshold(margin=1.0))

    Only training changes: after `model.eval()`, without gradients or without labels, the model computes as before. In
    training, `outputs.logits` are those of the last position. Labels are shifted as the model shifts them,
    `num_items_in_batch` and `shift_labels` keep their meaning, and the model's auxiliary losses stay. A scale or soft
    cap of the logits, a bias, and tied or padded embeddings are supported. The patched model is checked against the
    original on a tiny batch of random ids.

    Args:
        model: a causal language model of transformers, also one wrapped by PEFT.
        loss: an `OutputLoss` with reduction `mean`, or its first argument; default: cross-entropy.
        options: further arguments of `OutputLoss`, unless `loss` is one.

    Returns a handle, which is also a context manager. Raises ValueError if the model's logits are not its last hidden
    vectors times its output embedding (apart from a scale and a soft cap), if the output embedding is quantised or has
    a LoRA adapter, and if the model is already patched. `torch.nn.DataParallel` raises it for a patched model.
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
    if isinstance(getattr(vars(_linear(model)).get("forward"), "__self__", None), Patched):
        raise ValueError(f"{type(model).__name__} is already patched; undo that first")
    patched = Patched(model, criterion)
    try:
        patched._check()
    except BaseException:
        patched.undo()
        raise
    return patched


class Patched:
    """A model changed by `patch`; leaving it as a context manager undoes the change.

    `criterion` is the `OutputLoss`: log its `nll`, and save its `state_dict()` if it has a gate.

    Args:
        model: a causal language model of transformers.
        criterion: its loss.
    """

    def __init__(self, model: torch.nn.Module, criterion: OutputLoss):
        self.model, self.criterion = model, criterion
        self._head = _linear(model)
        # Arguments of the current forward pass, if it is intercepted, and its loss.
        self._call: dict | None = None
        self._loss: torch.Tensor | None = None
        self._asked = False
        names = (
            (model, "forward"),
            (model, "_loss_function"),
            (model, "_replicate_for_data_parallel"),
            (self._head, "forward"),
        )
        self._before = [(module, name, vars(module).get(name)) for module, name in names]
        self._own_forward, self._own_loss = model.forward, model.loss_function
        self._own_head = self._head.forward
        self._names = tuple(inspect.signature(self._own_forward).parameters)
        model.forward = _Forward(self)
        model.loss_function = self._loss_function
        model._replicate_for_data_parallel = _no_replica
        self._head.forward = self._head_forward

    def undo(self) -> None:
        """Restore the original model."""
        for module, name, value in self._before:
            if value is None:
                vars(module).pop(name, None)
            else:
                vars(module)[name] = value

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

    def _forward(self, *arguments, **named):
        """The model's forward pass; when it trains on labels, the head computes the loss instead of logits."""
        call = dict(zip(self._names, arguments, strict=False)) | named
        if not (self.model.training and torch.is_grad_enabled()) or call.get("labels") is None:
            return self._own_forward(*arguments, **named)
        if _linear(self.model) is not self._head:
            raise ValueError("the output embedding was replaced after the model was patched; patch the model again")
        self._call, self._loss = call, None
        try:
            return self._own_forward(*arguments, **named)
        finally:
            self._call = self._loss = None

    def _head_forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits; in an intercepted pass the loss, and logits of the last position only."""
        if self._call is None:
            return self._own_head(hidden)
        # As the hook of a model with a `device_map`, which this method replaces.
        hidden = hidden.to(self._head.weight.device)
        # Computed here because sharded weights are whole only while their module runs.
        self._loss = self._loss_of(hidden, self._head.weight, self._head.bias)
        with torch.no_grad():
            return self._own_head(hidden[:, -1:])

    def _loss_of(self, hidden, weight, bias) -> torch.Tensor:
        call, criterion = self._call, self.criterion
        labels, targets = call["labels"], call.get("shift_labels")
        targets = _shifted(labels) if targets is None else targets
        if hidden.shape[:-1] != targets.shape:
            raise ValueError(
                f"the head reads {tuple(hidden.shape[:-1])} positions, but labels are {tuple(targets.shape)}; a "
                "patched model trains on all positions"
            )
        number, inputs = call.get("num_items_in_batch"), _read(call)
        if number is not None and criterion._parts.gate is not None and criterion._told is None:
            # Some models of transformers count the labels before the shift.
            own = torch.stack([(targets != IGNORED).sum(), (labels != IGNORED).sum()])
            if number not in (*own, *summed(own.clone())):
                raise ValueError(
                    f"this micro-batch has {int(own[0])} of the step's {int(number)} targets, and the gate counts "
                    "those of the whole step; call begin_step before each step"
                )
        if inputs is not None and inputs.shape != targets.shape:
            inputs = None
        if isinstance(number, torch.Tensor):
            # `Trainer` has it on the first device of the model.
            number = number.to(weight.device)
        return criterion(hidden, weight, targets, bias=bias, inputs=inputs, number=number)

    def _loss_function(self, *arguments, **named) -> torch.Tensor:
        """Replaces the model's `loss_function`."""
        self._asked = True
        return self._own_loss(*arguments, **named) if self._loss is None else self._loss

    def _check(self) -> None:
        """Find the model's scale and soft cap; raises ValueError if the loss then differs from the model's own."""
        model, name, weight = self.model, type(self.model).__name__, self._head.weight
        generator = torch.Generator().manual_seed(0)
        ids = torch.randint(weight.shape[0], (ROWS, LENGTH), generator=generator).to(weight.device)
        training = {module: module.training for module in model.modules()}
        criterion, raw = self.criterion, []
        hook = self._head.register_forward_hook(lambda module, inputs, output: raw.append(output))
        try:
            model.eval()
            with torch.no_grad():
                own = self._own_forward(input_ids=ids, labels=ids)
                if not raw or not self._asked:
                    raise ValueError(
                        f"{name} does not call its output embedding and loss_function in the usual way; see its code"
                    )
                scale, soft_cap = _change_of_logits(model, raw[-1], own.logits)
                self.criterion = OutputLoss(logit_scale=scale, soft_cap=soft_cap)
                self._call = {"labels": ids, "input_ids": ids}
                loss = self._own_forward(input_ids=ids, labels=ids).loss
        finally:
            hook.remove()
            self.criterion, self._call, self._loss = criterion, None, None
            for module, was in training.items():
                module.training = was
        if not torch.isclose(loss.float(), own.loss.float(), rtol=_tolerance(weight.dtype)):
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


class _Forward:
    """A patched model's forward pass, with the original signature, which `Trainer` and `generate` inspect.

    It is an object so that a deep copy of the model gets its own.
    """

    def __init__(self, patched: Patched):
        self.patched, self.__signature__ = patched, inspect.signature(patched._own_forward)

    def __call__(self, *arguments, **named):
        return self.patched._forward(*arguments, **named)


def _no_replica() -> None:
    """Replaces the method that `nn.DataParallel` copies a model with; the copies would all call the original."""
    raise ValueError(
        "torch.nn.DataParallel does not work with a patched model; start the script with torchrun, one process per GPU"
    )


def _linear(model: torch.nn.Module) -> torch.nn.Linear:
    """The output embedding, also if PEFT wraps it; raises ValueError unless it is a plain linear layer."""
    head = model.get_output_embeddings()
    if hasattr(head, "modules_to_save"):
        head = head.modules_to_save[head.active_adapters[0]]
    if head is None:
        raise ValueError(
            f"{type(model).__name__} has no output embedding; patch the model that has one, such as that of "
            "AutoModelForCausalLM"
        )
    # Sharded and parametrised layers have other classes, with this same forward method.
    if not isinstance(head, torch.nn.Linear) or type(head).forward is not torch.nn.Linear.forward:
        raise ValueError(
            f"the output embedding of {type(model).__name__} is a {type(head).__module__}.{type(head).__name__}, not "
            "a torch.nn.Linear; leave it out of adapters and quantisation"
        )
    return head


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


def _shifted(labels: torch.Tensor) -> torch.Tensor:
    """The label that each position predicts: B x T -> B x T, ignored at the last position."""
    return F.pad(labels[:, 1:], (0, 1), value=IGNORED)
