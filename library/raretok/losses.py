"""The training loss as one object, for this pipeline and for other training code.

    criterion = OutputLoss(gate=AGG(alpha=0.03, memory=100), counts=counts)
    loss = criterion(hidden, weight, targets)      # instead of logits and F.cross_entropy
    loss.backward()

It combines parts (`raretok.methods`): at most one loss, one gate, one penalty and one perturbation. docs/losses.md has
complete examples.
"""

import dataclasses
import inspect
import io
import math
import warnings
from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import distributed
from torch._C._functorch import is_functorch_wrapped_tensor

from raretok.checks import check_ids, check_layer, check_targets, check_tensors, outside, shape_of, whole_numbers
from raretok.methods import Method, TrainingFacts
from raretok.methods.counting import Group, checked_counts, checked_special, listed, summed
from raretok.methods.cross_entropy import CrossEntropy
from raretok.methods.parts import Gate, Loss, Penalty, Perturbation
from raretok.methods.separated import Separated
from raretok.output import output_layer
from raretok.output.outputs import Observed
from raretok.output.target_places import Places
from raretok.output.transfers import ToHost, put

__all__ = ["OutputLoss"]

PLAIN = Method(CrossEntropy(), Separated("matrix"))
# The class of each part.
KINDS = {"loss": Loss, "gate": Gate, "penalty": Penalty, "perturbation": Perturbation}
REDUCTIONS = ("mean", "sum", "none")
# The key of the state in a `state_dict`, after the module's name.
STATE_KEY = "_extra_state"


class OutputLoss(torch.nn.Module):
    """The training loss from hidden vectors and output embedding, with all gradients; N x V logits are never allocated.

    Replaces `F.cross_entropy(hidden @ weight.T + bias, targets)`, with the same mean and the same ignored index. Values
    are exact (`raretok.output.output_layer` has the formulas). After `eval()` and under `torch.no_grad()` it is plain
    cross-entropy, so that methods stay comparable.

    Args:
        loss: `CrossEntropy()` (default), `Threshold(margin=...)`, `Softminus(...)`, `Contrastive()`,
            `AdaptiveTraining(...)`, `PowerLawDecay(...)` or `LogitAdjustment(...)`.
        gate: `AGG(...)`, `AGPS(...)` or `Freeze(...)`, which scale the gradient of rare rows of `weight`, or None.
        penalty: `CosReg(...)`, `MuLoss(...)`, `ZLoss(...)`, `Unlikelihood(...)` or `UnigramDivergence(...)`, added to
            the loss, or None.
        perturbation: `Adversarial(...)`, or None.
        training_temperature: factor T of the logits in training, above 0: the loss is that of the logits T z, as in
            stop_jostling (appendix E).
        counts: how often each type is a target in the training text, V whole numbers (`raretok.count_targets`).
            Required by gates and by losses and penalties that use frequencies. V is the number of rows of `weight`,
            including unused ones.
        special: ids that are never rare, such as padding and the end of a text.
        targets_per_step: mean number of targets per step over all processes, for which `AGG` checks `alpha` against the
            counts. Default: the number of the first step.
        ignore_index: target of positions that do not count.
        reduction: `mean` over targets, `sum`, or `none` for the loss of every position. A penalty on parameters needs
            `mean`. `none` computes the logits again in its backward pass, because the gradient of each position is
            known only then.
        logit_scale: factor of the model's logits, also in evaluation. Granite divides by `logits_scaling`: give its
            inverse.
        soft_cap: for models whose logits are soft_cap tanh(z / soft_cap), applied after the scale; above 0, or None. It
            does not combine with `Threshold(alpha=...)` and perturbations, whose norms know no cap.
        processes: over whose targets the mean is, with `torch.distributed`. `all`: all processes, for training code
            that averages gradients over them, as DistributedDataParallel and FSDP2 do. `own`: this process alone, for
            trainers that weight the processes' losses themselves. A `ProcessGroup`: its processes, which average their
            gradients; those outside of it hold copies (tensor parallelism). Default: `all`; for a model patched by
            `raretok.patch` `own`, as without the patch. Gates count the targets of the group, or of all processes.
        observe: keep statistics of each position in `observed`.

    Raises ValueError if parts or values do not fit each other or the counts, for instance if `alpha` makes no type
    rare, or all types; without `targets_per_step` the first step with targets raises that.

    Each call in training is one step of the optimiser; for steps of several micro-batches, call `begin_step`. With
    several processes (`torch.distributed`), each process passes its own micro-batch, and `processes` says over whose
    targets the mean is. `sum`, `none` and `processes="own"` without a gate or `Contrastive` ignore other processes;
    otherwise all must take the same number of steps, and with `Contrastive` the same number of calls.

    `nll` is the mean plain negative log-likelihood in nats, a detached scalar; log it, since losses of methods are not
    comparable. In training it accumulates over the micro-batches of a step, as the losses do. Its average over
    processes is the mean over all their targets; where a process ignores the others, it is the mean over its own. With
    `observe`, `observed` has `log_probability` and `entropy` (nats) and `is_best` (no type has a larger logit than the
    target) of the model's own logits in the last call, shaped like the targets and without gradient; 0 and False for
    ignored ones.

    `state_dict()` holds the counts of a gate, for an exact continuation; without a gate, or a penalty that ends, it is
    empty. Save it between steps, and for every process, because each keeps its own targets; loading a state saved
    within a step or by another process raises ValueError.
    """

    def __init__(
        self,
        loss: object | None = None,
        *,
        gate: object | None = None,
        penalty: object | None = None,
        perturbation: object | None = None,
        training_temperature: float = 1.0,
        counts: Sequence[int] | np.ndarray | torch.Tensor | None = None,
        special: Iterable[int] = (),
        targets_per_step: float | None = None,
        ignore_index: int | None = -100,
        reduction: str = "mean",
        logit_scale: float = 1.0,
        soft_cap: float | None = None,
        processes: object | None = None,
        observe: bool = False,
    ):
        super().__init__()
        parts = {"loss": loss, "gate": gate, "penalty": penalty, "perturbation": perturbation}
        parts = {kind: part for kind, part in parts.items() if part is not None}
        for kind, part in parts.items():
            if isinstance(part, type):
                name = part.__name__
                raise ValueError(f"{kind}= is the class {name}; give an instance, {name}(...)")
            if not isinstance(part, KINDS[kind]):
                raise ValueError(f"{kind}= is {part!r}, which is no {kind}; give one of raretok's parts")
        if gate is not None and gate.freezes_rows:
            raise ValueError(
                "Freeze(part='all'), the default, also stops weight decay of the rows, which a loss cannot do; "
                "give part='b', 'c' or 'bc', or mask the rows in your optimiser"
            )
        needing = [type(part).__name__ for part in parts.values() if part.needs_counts]
        if counts is None and needing:
            raise ValueError(f"{needing[0]} needs counts=, how often each type is a target in the training text")
        if targets_per_step is not None and not targets_per_step > 0:
            raise ValueError(f"targets_per_step is {targets_per_step}; it must be above 0")
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction is {reduction!r}; it must be one of {', '.join(REDUCTIONS)}")
        if reduction != "mean" and penalty is not None and not penalty.on_tokens:
            raise ValueError(
                f"{type(penalty).__name__} is a penalty on parameters, which is added to the mean loss of a step; "
                "leave reduction='mean'"
            )
        for name, value in (("logit_scale", logit_scale), ("soft_cap", 1.0 if soft_cap is None else soft_cap)):
            if not 0 < value < math.inf:
                raise ValueError(f"{name} is {value}; it must be above 0 and finite")
        group = _group_of(processes)
        if processes not in (None, "all") and loss is not None and not loss.combines_with_gates:
            raise ValueError(f"{type(loss).__name__} compares the targets of all processes; leave out processes=")
        facts, special = None, listed(special)
        if counts is None and special:
            raise ValueError("special= names types of counts=, which is missing; give both, or leave it out")
        if counts is not None:
            counts = checked_counts(counts)
            facts = TrainingFacts(counts, checked_special(special, len(counts)), targets_per_step, group=group)
            if not np.delete(counts, list(facts.special)).any():
                raise ValueError("special has all types that occur in counts; leave out those that can be rare")
        method = dataclasses.replace(PLAIN, **parts, training_temperature=training_temperature)
        if soft_cap is not None and (found := uncapped_part(method)):
            raise ValueError(f"{found} is of logits without a soft cap; leave one of them out")
        self.reduction, self.logit_scale, self.soft_cap, self.observe = reduction, logit_scale, soft_cap, observe
        self.processes, self._group = processes if group is None else group, group
        self._set_up(method, facts, ignore_index)

    def _set_up(self, parts: Method, facts: TrainingFacts | None, ignore_index: int | None) -> None:
        self._parts, self._facts, self._ignore_index = parts, facts, ignore_index
        self.steps, self.nll, self._logits = 0, None, None
        self.observed: Observed | None = None
        # For probes of gradients: keep the logits of a call in `_logits`, N x V, with their gradient.
        self._keeps_logits = False
        # Whether `begin_step` counts the targets; otherwise the first call does, which knows the device of the weights.
        self._begins_at_once = False
        # Targets of the step's remaining calls; None if every call is a step.
        self._told: deque[torch.Tensor] | None = None
        # Of the step: whether it has begun, its number of calls, divisor of summed losses, and summed plain NLL.
        self._has_begun, self._calls, self._normaliser, self._summed_nll = False, 1, None, 0.0
        # Targets passed to `prepare`, and their copy.
        self._prepared: tuple[torch.Tensor | None, ToHost | None] = None, None
        self._start_gate()
        self._move("cpu" if facts is None else facts.device)

    def _start_gate(self) -> None:
        """Start the gate if its counts, and the number of targets per step if it needs that, are known."""
        facts, gate = self._facts, self._parts.gate
        self._gate = None
        if gate is not None and (facts.tokens_per_step or not gate.needs_tokens_per_step):
            self._gate = gate.start(facts)

    def _move(self, device: torch.device | str) -> None:
        """Start the other parts that need counts on a device. The gate stays on the CPU."""
        self._device, self._method = torch.device(device), self._parts
        if self._facts is not None:
            self._method = self._parts.started(dataclasses.replace(self._facts, device=str(device)))

    def extra_repr(self) -> str:
        """The parts, and options other than the default, for printing the module."""
        parts = {kind: getattr(self._parts, kind) for kind in ("loss", "gate", "penalty", "perturbation")}
        shown = [f"{kind}={part}" for kind, part in parts.items() if part is not None]
        options = vars(self) | {
            "training_temperature": self._parts.training_temperature,
            "special": () if self._facts is None else self._facts.special,
            "ignore_index": self._ignore_index,
        }
        defaults = {name: parameter.default for name, parameter in inspect.signature(type(self)).parameters.items()}
        shown += [
            f"{name}={options[name]!r}" for name in defaults if name in options and options[name] != defaults[name]
        ]
        return ", ".join(shown)

    def begin_step(self, targets: torch.Tensor | Iterable[torch.Tensor]) -> None:
        """Announce the targets of all micro-batches of the next step of the optimiser.

        Call it before the first micro-batch of every step, or never; without it, every call in training is a step. The
        losses of the micro-batches are divided by the number of targets of the whole step, so that their sum is the
        mean over the step; do not divide by the number of micro-batches again. Warns if the previous step announced
        more targets than were passed, because its losses were divided by all of them, or if it had no call.

        Args:
            targets: the `targets` of the following calls of this process, in order: one tensor or several, of any shape
                and on any device, with `ignore_index` for positions without a target.
        """
        told = deque()
        for batch in [targets] if isinstance(targets, torch.Tensor) else targets:
            check_ids("announced targets", batch)
            told.append(whole_numbers(batch))
        left = sum(batch.numel() for batch in self._told or ())
        if left and not self._has_begun:
            warnings.warn(
                "begin_step was called twice without a call between them; is the loss used? (transformers' Trainer "
                "computes its own with label_smoothing_factor or compute_loss_func)",
                stacklevel=2,
            )
        elif left and len(self._told) < self._calls:
            warnings.warn(
                f"begin_step announced {left} more targets for step {self.steps} than were passed, and its loss was "
                "divided by all of them; announce exactly the targets that you pass",
                stacklevel=2,
            )
        self._told, self._has_begun = told, False
        if self._begins_at_once:
            self._begin(list(self._told), self._device)

    def prepare(self, targets: torch.Tensor) -> None:
        """Start copying the targets of the next call to the CPU before the model runs, which shortens a later wait.

        Targets that are on the CPU, which a call also accepts, need no wait at all.

        Args:
            targets: those of the next call, on the device of the weights.
        """
        targets = whole_numbers(targets)
        self._prepared = targets, ToHost(targets)

    def forward(
        self,
        hidden: torch.Tensor,
        weight: torch.Tensor,
        targets: torch.Tensor,
        *,
        bias: torch.Tensor | None = None,
        inputs: torch.Tensor | None = None,
        documents: torch.Tensor | None = None,
        token_weights: torch.Tensor | None = None,
        number: float | torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The loss: a scalar of at least 32 bits, or with `reduction="none"` one value per target, 0 for ignored ones.

        The backward pass of a scalar can run only once. There are no second derivatives.

        Args:
            hidden: input of the output layer, B x T x d or N x d; of any precision, also under autocast.
            weight: the output embedding, V x d, tied or not. If it needs no gradient, none is computed.
            targets: the type that each position predicts, B x T or N (already shifted), or `ignore_index`. They may be
                on the CPU whatever the device of the weights, which spares waiting for a GPU.
            bias: of the output layer, V, or None.
            inputs: the token sequences that the model read, B x T, or `ignore_index` for padding; `Unlikelihood` needs
                them.
            documents: the number of the document that each input belongs to, B x T, for packed sequences; a document
                ends where the number changes. Earlier tokens are those of the same document.
            token_weights: factors of the loss of each position, including penalties on tokens; shaped like targets, of
                any sign, without gradient. The mean is still over the number of targets, so weights with mean 1 keep
                the loss's size. They affect neither gates nor `nll`.
            number: divisor of the sum instead of the number of targets, for trainers that know the number of the step
                (`num_items_in_batch` of transformers); only with `reduction="mean"`.

        Raises ValueError for wrong types and shapes, for targets and inputs that are not whole numbers or outside the
        vocabulary (checked only on a CPU, and of targets that a gate counts), and for targets that `begin_step` did not
        announce (on a GPU: another number of them).
        """
        named = {
            "bias": bias,
            "inputs": inputs,
            "documents": documents,
            "token_weights": token_weights,
            "number": number,
        }
        if any(is_functorch_wrapped_tensor(tensor) for tensor in (hidden, weight) if isinstance(tensor, torch.Tensor)):
            raise ValueError(
                "OutputLoss does not work under torch.func; use backward() or torch.autograd.grad, or cross-entropy of "
                "the logits under torch.func"
            )
        if torch.compiler.is_compiling():
            return torch.compiler.disable(self._computed)(hidden, weight, targets, **named)
        return self._computed(hidden, weight, targets, **named)

    def _computed(self, hidden, weight, targets, *, bias, inputs, documents, token_weights, number) -> torch.Tensor:
        """As `forward`; hidden from torch.compile, because it computes gradients chunk by chunk."""
        targets, inputs, documents = (whole_numbers(ids) for ids in (targets, inputs, documents))
        trains = self.training and torch.is_grad_enabled()
        needs_inputs = trains and self._method.penalty is not None and self._method.penalty.needs_inputs
        self._check(hidden, weight, targets, bias, inputs if trains else None, needs_inputs, token_weights)
        if documents is not None:
            documents = _numbered(documents, targets).to(weight.device)
        if number is not None and self.reduction != "mean":
            raise ValueError(f"number= divides the sum of a mean loss; leave it out, or reduction={self.reduction!r}")
        device = weight.device
        (prepared, copy), self._prepared = self._prepared, (None, None)
        copy = copy if prepared is targets else ToHost(targets)
        targets = put(targets, device)
        if self.logit_scale != 1.0:
            hidden, bias = hidden * self.logit_scale, None if bias is None else bias * self.logit_scale
        asked = {
            "bias": bias,
            "padding": self._ignore_index,
            "token_weights": None if token_weights is None else token_weights.to(device),
            "soft_cap": self.soft_cap,
            "per_position": self.reduction == "none",
            "observe": self.observe,
        }
        if number is not None:
            # A step without targets has loss 0 and not NaN.
            number = (number.double() if isinstance(number, torch.Tensor) else number) + (number == 0)
        own = 1.0 if self.reduction == "sum" else number
        if not trains:
            places = Places(None, targets, self._ignore_index, copy)
            result = output_layer.output_loss(
                PLAIN, None, hidden, weight, targets, normaliser=own, places=places, **asked
            )
            self.nll = result.nll / self._number([targets]).clamp_min(1)
            return self._returned(result, targets)
        self._enter(targets if self._parts.gate is None else copy.wait(), device)
        result = output_layer.output_loss(
            self._method,
            self._gate,
            hidden,
            weight,
            targets,
            inputs=None if inputs is None else inputs.to(device),
            documents=documents,
            normaliser=self._normaliser if own is None else own,
            # Without begin_step, the share follows from `number`, the targets of the whole step, if given.
            share=1 / self._calls if number is None else self._number([targets]) / number,
            need_logits=self._keeps_logits,
            places=Places(self._gate, targets, self._ignore_index, copy),
            **asked,
        )
        self._summed_nll = self._summed_nll + result.nll
        self.nll, self._logits = self._summed_nll / self._normaliser, result.logits
        return self._returned(result, targets)

    def _returned(self, result: output_layer.Result, targets: torch.Tensor) -> torch.Tensor:
        """The loss of a result, after setting `observed`; both shaped like the targets."""
        if result.observed is not None:
            seen = {name: values.view_as(targets) for name, values in vars(result.observed).items()}
            self.observed = Observed(**seen)
        return result.loss.view_as(targets) if self.reduction == "none" else result.loss

    def rare(self) -> torch.Tensor | None:
        """Which types are rare for the gate now, V (bool); None without a gate, or before `AGG`'s first step."""
        if self._gate is None or (self._parts.gate.needs_tokens_per_step and not self.steps):
            return None
        return put(self._gate.rare(), self._device)

    def _state(self) -> dict[str, torch.Tensor]:
        """The tensors of `state_dict`, for a checkpoint of whoever knows the parts."""
        state = {"steps": torch.tensor(self.steps, device="cpu")}
        if self._facts is not None and self._facts.tokens_per_step is not None:
            told = torch.tensor(self._facts.tokens_per_step, dtype=torch.float64, device="cpu")
            state["targets_per_step"] = told
        of_gate = self._gate.state() if self._gate else {}
        if "recent" in of_gate:
            state["process"] = torch.tensor(process_of(), device="cpu")
        return state | {f"gate.{name}": value for name, value in of_gate.items()}

    def get_extra_state(self) -> torch.Tensor:
        """The content of `state_dict`: a file of `state()` and what it belongs to, as bytes (uint8).

        One tensor, because safetensors saves nothing else, and torch.distributed.checkpoint silently leaves out keys
        that appear only after the first step.
        """
        is_within_step = self._has_begun and bool(self._told)
        of = {"parts": _counting(self._parts), "types": len(self._facts.counts), "is_within_step": is_within_step}
        file = io.BytesIO()
        torch.save(of | self._state(), file)
        return torch.frombuffer(file.getbuffer(), dtype=torch.uint8)

    def set_extra_state(self, state: torch.Tensor) -> None:
        """Continue from a `state_dict`.

        Raises ValueError if it is of another gate, vocabulary or process, or was saved within a step.
        """
        state = torch.load(io.BytesIO(state.cpu().numpy().tobytes()), map_location="cpu", weights_only=True)
        theirs, ours = state["parts"], _counting(self._parts)
        if theirs != ours:
            raise ValueError(
                f"the state belongs to {_named(theirs)}, but this OutputLoss has {_named(ours)}; give it the same, or "
                f"remove the key that ends in {STATE_KEY} and load the rest with strict=False"
            )
        if state["types"] != len(self._facts.counts):
            raise ValueError(
                f"the state belongs to a vocabulary of {state['types']} types, but counts has "
                f"{len(self._facts.counts)}; give the counts of that vocabulary"
            )
        if state["is_within_step"]:
            raise ValueError(
                f"the state was saved within step {int(state['steps'])}, after some of the micro-batches that "
                "begin_step announced; save it between steps"
            )
        self._load(state)

    def _load(self, state: dict[str, torch.Tensor]) -> None:
        """Continue from `state()`; raises ValueError if it holds the targets of another process."""
        if "process" in state and state["process"].tolist() != process_of():
            (rank, size), (our_rank, our_size) = state["process"].tolist(), process_of()
            raise ValueError(
                f"the state holds the targets of process {rank} of {size}, but this is process {our_rank} of "
                f"{our_size}; each process must save and load its own state. If their number has changed, do not load "
                "the state of the criterion, so that its gate counts anew"
            )
        self.steps, self._told, self._has_begun = int(state["steps"]), None, False
        if self._facts is not None:
            told = state.get("targets_per_step")
            self._facts = dataclasses.replace(self._facts, tokens_per_step=None if told is None else told.item())
        self._start_gate()
        self._move(self._device)
        if self._gate is not None:
            self._gate.load({name.removeprefix("gate."): value for name, value in state.items() if "gate." in name})

    def _save_to_state_dict(self, destination, prefix, keep_vars) -> None:
        # torch asks the class whether there is an extra state, but only a part that counts steps has one.
        if _counting(self._parts):
            super()._save_to_state_dict(destination, prefix, keep_vars)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, *lists) -> None:
        if _counting(self._parts) or prefix + STATE_KEY in state_dict:
            super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, *lists)

    def _enter(self, targets: torch.Tensor, device: torch.device) -> None:
        """Begin a call, and a step if none has begun; raises ValueError for targets that were not announced."""
        if self._told is None:
            self._begin([targets], device)
        elif not self._told or not _are_same(self._told[0], targets):
            raise ValueError(
                "begin_step did not announce the targets of this call; call it before each step, with the targets of "
                "all its micro-batches"
            )
        else:
            if not self._has_begun:
                self._begin(list(self._told), device)
            self._told.popleft()

    def _begin(self, batches: list[torch.Tensor], device: torch.device) -> None:
        """Begin a step: count the targets of this process's micro-batches before the first of them is used."""
        if self._parts.gate is not None:
            # Announced targets on a GPU have to be waited for.
            batches = [batch.cpu() for batch in batches]
            for batch in batches:
                check_targets(batch, len(self._facts.counts), self._ignore_index)
        own = number = self._number(batches)
        processes, is_own = 1, self.processes == "own"
        # Without a mean and a gate nothing is needed of other processes, which may take another number of steps.
        if (self.reduction == "mean" and not is_own) or self._parts.gate is not None:
            number, (_, processes) = summed(number.clone(), self._group), process_of(self._group)
        if self._parts.gate is not None and self._gate is None and number > 0:
            # The first step with targets gives the number of targets per step, so the gate can start.
            self._facts = dataclasses.replace(self._facts, tokens_per_step=number.item())
            self._start_gate()
        if device != self._device:
            self._move(device)
        self._normaliser = put(own.clamp_min(1) if is_own else number.clamp_min(1) / processes, device)
        self._calls, self._summed_nll = len(batches), 0.0
        self.steps, self._has_begun = self.steps + 1, True
        if self._gate is not None:
            targets = torch.cat([batch.flatten() for batch in batches]).to(torch.int64)
            self._gate.begin_step(targets if self._ignore_index is None else targets[targets != self._ignore_index])
        until = None if self._method.penalty is None else self._parts.penalty.until
        if until is not None and self.steps > until:
            self._method = dataclasses.replace(self._method, penalty=None)

    def _number(self, batches: list[torch.Tensor]) -> torch.Tensor:
        """Number of targets, a float64 scalar on their device, because reading it would wait for a GPU."""
        if self._ignore_index is None:
            return torch.tensor(sum(batch.numel() for batch in batches), dtype=torch.float64, device="cpu")
        return sum((batch != self._ignore_index).sum(dtype=torch.float64) for batch in batches)

    def _check(self, hidden, weight, targets, bias, inputs, needs_inputs: bool, token_weights) -> None:
        """Raise ValueError for wrong types and shapes, ids outside the vocabulary, or missing inputs."""
        if hasattr(weight, "full_tensor"):
            raise ValueError(
                "weight is sharded; call OutputLoss in the forward pass of the module that fully_shard wraps together "
                "with the head, where the weight is whole"
            )
        check_layer(hidden, weight, targets, bias)
        if token_weights is not None:
            check_tensors(token_weights=token_weights)
        if inputs is not None:
            check_ids("inputs", inputs)
        if self._facts is not None and len(self._facts.counts) != len(weight):
            raise ValueError(
                f"counts has {len(self._facts.counts)} types, but weight has {len(weight)} rows; count all types, "
                "including unused ones"
            )
        if needs_inputs and (inputs is None or inputs.dim() != 2):
            name = type(self._method.penalty).__name__
            raise ValueError(f"{name} needs inputs=, the token sequences that the model read, B x T")
        if inputs is not None and inputs.shape != targets.shape:
            raise ValueError(
                f"inputs are {shape_of(inputs)}, but targets are {shape_of(targets)}; each position has one input"
            )
        if token_weights is not None and token_weights.shape != targets.shape:
            raise ValueError(f"token_weights are {shape_of(token_weights)}, but targets are {shape_of(targets)}")
        check_targets(targets, len(weight), self._ignore_index)
        wrong = outside(inputs, len(weight), self._ignore_index) if needs_inputs else None
        if wrong is not None:
            padding = "" if self._ignore_index is None else f", or {self._ignore_index} for padding"
            raise ValueError(f"an input is {wrong}; inputs must be ids from 0 to {len(weight) - 1}{padding}")


def _numbered(documents: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Documents counted from 0 in each sequence, B x T, so that none comes twice; raises ValueError for wrong ones."""
    check_ids("documents", documents)
    if documents.shape != targets.shape or documents.dim() != 2:
        raise ValueError(f"documents are {shape_of(documents)}, but targets are {shape_of(targets)}; give them B x T")
    changes = torch.zeros_like(documents, dtype=torch.int64)
    changes[:, 1:] = documents[:, 1:] != documents[:, :-1]
    return changes.cumsum(dim=1)


def _are_same(announced: torch.Tensor, targets: torch.Tensor) -> bool:
    """Whether targets are the announced ones; on a GPU, where comparing would wait, whether they are as many."""
    if announced.numel() != targets.numel():
        return False
    on_cpu = announced.device.type == targets.device.type == "cpu"
    return not on_cpu or bool((announced.flatten() == targets.flatten()).all())


def process_of(group: Group | None = None) -> list[int]:
    """Rank of this process and number of processes."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return [0, 1]
    handle = None if group is None else group.handle
    return [distributed.get_rank(handle), distributed.get_world_size(handle)]


def _group_of(processes: object | None) -> Group | None:
    """The processes whose targets are counted, or None for all; raises ValueError for a wrong `processes`."""
    if processes in (None, "all", "own"):
        return None
    if distributed.is_available() and isinstance(processes, distributed.ProcessGroup):
        return Group(processes)
    raise ValueError(f"processes is {processes!r}; it must be 'all', 'own' or a process group")


def uncapped_part(method: Method) -> str | None:
    """The name of a part that is not defined under a soft cap, or None."""
    if method.perturbation is not None:
        return "a perturbation"
    return "Threshold(alpha)" if method.loss.has_margin_of_norms else None


def _counting(method: Method) -> dict[str, dict]:
    """The parts that count steps, so that there is a state to save: a gate, and a penalty that ends.

    Each with its name and plain values; a file with numpy numbers could not be loaded with `weights_only=True`.
    """
    ends = method.penalty is not None and method.penalty.until is not None
    parts = {"gate": method.gate, "penalty": method.penalty if ends else None}
    return {
        kind: {"name": type(part).__name__}
        | {name: value.item() if hasattr(value, "item") else value for name, value in vars(part).items()}
        for kind, part in parts.items()
        if part is not None
    }


def _named(parts: dict[str, dict]) -> str:
    """Parts as they are made: gate=AGG(alpha=0.3, ...)."""
    shown = []
    for kind, values in parts.items():
        options = ", ".join(f"{name}={value!r}" for name, value in values.items() if name != "name")
        shown.append(f"{kind}={values['name']}({options})")
    return " and ".join(shown) or "nothing that counts steps"
