"""The output layer of several models at once, each with its own method, for small vocabularies.

It follows `raretok.output.output_layer`, but holds all logits of all models, M x N x V, and batches matrix products
over models. Methods that differ only in numbers (a margin, a temperature) form a family, whose loss is computed once by
`torch.func.vmap`, with a tensor in place of each number. The methods' own files need not know about this.

Shapes: M models, N positions, d width, V types.
"""

import copy
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.func import vmap
from torch.nn import functional as F

from raretok.output.outputs import Outputs, is_on_tokens, is_ungated, of_batch, token_losses

# Parts of a method that determine the loss; gates and embedding updates act afterwards.
PARTS = ("loss", "penalty", "perturbation")
# A number of a method: its part ("" for the method itself) and its name there.
Name = tuple[str, str]


@dataclass
class StackedResult:
    """Losses and gradients of M models.

    loss, nll: M, means over positions of the method's loss and of plain cross-entropy. hidden: M x N x d, weight:
    M x V x d and logits: M x N x V, gradients of the loss; that of the logits before any gate.
    """

    loss: torch.Tensor
    nll: torch.Tensor
    hidden: torch.Tensor
    weight: torch.Tensor
    logits: torch.Tensor


class StackedOutput:
    """The output layer of M models, each with its method."""

    def __init__(self, methods: Sequence, device: str):
        """methods: `raretok.methods.Method`, one per model."""
        found: dict[tuple, Family] = {}
        for model, method in enumerate(methods):
            kind, numbers = described(method)
            family = found.setdefault(kind, Family(method, [], []))
            family.models.append(model)
            family.numbers.append(numbers)
        self.families = [part for family in found.values() for part in family.computable()]
        for family in self.families:
            family.prepare(device)

    def __call__(
        self, hidden: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor, inputs: torch.Tensor, gatings: dict
    ) -> StackedResult:
        """hidden: M x N x d. weight: M x V x d. targets: M x N. inputs: M x B x T, the sequences.

        gatings: for each model with a gate, the result of its `gates`.
        """
        z = torch.bmm(hidden, weight.transpose(1, 2))
        positions = targets.shape[1]
        nll = F.cross_entropy(z.flatten(0, 1), targets.flatten(), reduction="none").view_as(targets).sum(dim=1)
        loss, logits = torch.empty_like(nll), torch.empty_like(z)
        # Gradients with respect to logits that no gate affects, and those that do not pass through the logits.
        extra, past = {}, []
        for family in self.families:
            index = family.index
            arguments = [part[index] for part in (z, hidden, weight, targets, inputs)]
            loss[index], logits[index], of_penalty, *ways = family.gradients(*arguments, 1 / positions)
            if of_penalty is not None:
                extra |= dict(zip(family.models, of_penalty, strict=True))
            past.append((index, *ways))
        plain = dict.fromkeys(gatings)
        for model in gatings:
            plain[model] = logits[model].clone() if model in extra else logits[model]
        for model, of_penalty in extra.items():
            logits[model] += of_penalty
        hidden_gradient = torch.bmm(logits, weight)
        weight_gradient = torch.bmm(logits.transpose(1, 2), hidden)
        for model, (gates, classes) in gatings.items():
            d = gate_entries(plain[model], gates[classes].to(z.dtype), targets[model])
            weight_gradient[model] = (d if model not in extra else d + extra[model]).T @ hidden[model]
        for index, of_hidden, of_weight in past:
            if of_hidden is not None:
                hidden_gradient[index] += of_hidden
            if of_weight is not None:
                weight_gradient[index] += of_weight
        return StackedResult(loss, nll / positions, hidden_gradient, weight_gradient, logits)


@dataclass
class Family:
    """Models whose methods differ at most in numbers.

    method: of one of them. models: their indices. numbers: of each model's method, all of them.
    """

    method: object
    models: list[int]
    numbers: list[dict[Name, float]]
    is_mapped: bool = True
    index: slice | torch.Tensor | None = None
    different: dict[Name, torch.Tensor] | None = None

    def prepare(self, device: str) -> None:
        """Move the models' indices, and the numbers in which they differ, to the device."""
        first, last = self.models[0], self.models[-1]
        is_range = self.models == list(range(first, last + 1))
        self.index = slice(first, last + 1) if is_range else torch.tensor(self.models, device=device)
        values = {name: [numbers[name] for numbers in self.numbers] for name in self.numbers[0]}
        self.different = {
            name: torch.tensor(each, dtype=torch.float32, device=device)
            for name, each in values.items()
            if len(set(each)) > 1
        }

    def computable(self) -> list["Family"]:
        """This family if a trial shows that its loss can be vmapped; else smaller families or single models."""
        self.prepare("cpu")
        size, types, width, time = len(self.models), 3, 2, 2
        generator = torch.Generator().manual_seed(0)
        shapes = (time, types), (time, width), (types, width)
        z, h, w = (torch.randn(size, *shape, generator=generator) for shape in shapes)
        ids = torch.zeros(size, time, dtype=torch.int64)
        try:
            self.gradients(z, h, w, ids, ids[:, None], 1.0)
            return [self]
        except Exception:  # a loss may contain Python code that vmap cannot trace
            pass
        parts: dict[tuple, Family] = {}
        for model, numbers in zip(self.models, self.numbers, strict=True):
            # Models with equal numbers stay together; if all are equal, each is on its own.
            key = tuple(numbers.values()) if self.different else model
            part = parts.setdefault(key, Family(with_numbers(self.method, numbers), [], []))
            part.models.append(model)
            part.numbers.append(numbers)
        if self.different:
            return [smaller for part in parts.values() for smaller in part.computable()]
        return [dataclasses.replace(part, is_mapped=False) for part in parts.values()]

    def gradients(self, z, hidden, weight, targets, inputs, scale: float):
        """Losses (k) of k models, and four gradients, each None if there is none.

        They are with respect to the logits; to the logits, of an ungated penalty; to hidden vectors and to weights,
        without the part that passes through the logits. scale: factor of sums over positions.
        """
        leaves = [leaf.detach().requires_grad_() for leaf in (z, hidden, weight)]
        with torch.enable_grad():
            if self.is_mapped:
                loss, on_tokens = vmap(self.losses, in_dims=(0, 0, 0, 0, 0, 0, None))(
                    *leaves, targets, inputs, self.different, scale
                )
            else:
                one = [part[0] for part in (*leaves, targets, inputs)]
                loss, on_tokens = (part[None] for part in self.losses(*one, {}, scale))
        has_penalty = is_ungated(self.method.penalty)
        gradients = torch.autograd.grad(loss.sum(), leaves, allow_unused=True, retain_graph=has_penalty)
        of_penalty = torch.autograd.grad(on_tokens.sum(), leaves[:1])[0] if has_penalty else None
        return (loss + on_tokens).detach(), gradients[0], of_penalty, *gradients[1:]

    def losses(self, z, hidden, weight, targets, inputs, numbers, scale):
        """For one model: the loss with all other penalties, and an ungated penalty on tokens (0 if there is none)."""
        method = with_numbers(self.method, numbers)
        positions = torch.arange(len(targets), device=z.device)
        batch = of_batch(method.loss, targets, len(weight))
        total, on_tokens = token_losses(method, Outputs(z, hidden, weight, targets, batch, inputs, positions))
        loss = total.sum() * scale
        if method.penalty is not None and not is_on_tokens(method.penalty):
            loss = loss + method.penalty(Outputs(None, hidden, weight, targets, None, inputs))
        return loss, z.new_zeros(()) if on_tokens is None else on_tokens.sum() * scale


def gate_entries(d, gate, targets):
    """D times the gates, in their place, but for each position's own target: n x V, n x V, n -> n x V."""
    return gate.scatter_(1, targets[:, None], 1.0).mul_(d)


def described(method) -> tuple[tuple, dict[Name, float]]:
    """What defines a method's loss except its numbers, and the numbers by name."""
    kind, numbers = [], {("", "training_temperature"): method.training_temperature}
    for part_name in PARTS:
        part = getattr(method, part_name)
        if not dataclasses.is_dataclass(part):
            kind.append(part)  # None, or a started part, which belongs to one run
            continue
        kind.append(type(part))
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            if isinstance(value, float):
                numbers[part_name, field.name] = value
            else:
                kind.append((field.name, value))
    return (tuple(kind), tuple(numbers)), numbers


def with_numbers(method, numbers: dict[Name, object]):
    """A copy of a method with other numbers, or tensors in their place, which are not checked."""
    changed = copy.copy(method)
    for part_name in {part_name for part_name, _ in numbers} - {""}:
        object.__setattr__(changed, part_name, copy.copy(getattr(method, part_name)))
    for (part_name, name), value in numbers.items():
        object.__setattr__(getattr(changed, part_name) if part_name else changed, name, value)
    return changed
