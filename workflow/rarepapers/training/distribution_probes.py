"""Probes of the output bias and of predictions without context (natural_bias, figures 1, 13, 14)."""

import numpy as np
import torch

from rarepapers.core.errors import UserError
from rarepapers.training.probe_interface import Observation
from rarepapers.training.tasks import LOGITS_AT_ONCE, hidden_of
from raretok.methods.unigram import log_unigram


class OutputBias(Observation):
    """The output bias b along training: its `norm` (l2) and `divergence`, KL(unigram || softmax(b)) in nats.

    Measured after `steps` steps; see `chosen_steps` for the options.
    """

    def __init__(self, model: torch.nn.Module, training: dict, **options: list[int] | int):
        if model.output_bias is None:
            raise UserError("observe: output_bias needs a model with one (model.output_bias: zero, unigram, ...)")
        at = chosen_steps("output_bias", training["steps"], **options)
        self.tensors = observed_series(at, ("norm", "divergence"), model.output_weight.device)
        self.places = {step: place for place, step in enumerate(at)}

    @torch.no_grad()
    def measure(self, step: int, model: torch.nn.Module, task) -> None:
        if step not in self.places:
            return
        bias = model.output_bias.double()
        log_q = log_unigram(task.counts()).to(bias)
        place = self.places[step]
        self.tensors["norm"][place] = bias.norm()
        self.tensors["divergence"][place] = (log_q.exp() * (log_q - bias.log_softmax(dim=0))).sum()


class Divergence(Observation):
    """Divergence of the model's predictions p from three references: means over validation positions, in nats.

    `unigram`: KL(unigram || p); `uniform`: KL(uniform || p); `empirical`: -log p(y), the divergence from the actual
    token. Measured after `steps` steps; see `chosen_steps` for the options. The positions are a fixed part of the
    validation text.
    """

    def __init__(self, model: torch.nn.Module, training: dict, positions: int = 2000, **options: list[int] | int):
        """positions: approximate number of targets of the validation text to measure."""
        at = chosen_steps("divergence", training["steps"], **options)
        self.tensors = observed_series(at, ("unigram", "uniform", "empirical"), model.output_weight.device)
        self.places = {step: place for place, step in enumerate(at)}
        self.positions = positions

    @torch.no_grad()
    def measure(self, step: int, model: torch.nn.Module, task) -> None:
        if step not in self.places:
            return
        model.eval()
        log_q = log_unigram(task.counts()).to(task.device)
        sums, positions = torch.zeros(3, dtype=torch.float64, device=task.device), 0
        for inputs, targets in task.sample(self.positions):
            keep = slice(None) if task.padding is None else targets != task.padding
            hidden, own = hidden_of(model, inputs)[keep].flatten(0, -2), targets[keep].flatten()
            for part, y in zip(*(x.split(max(1, LOGITS_AT_ONCE // len(log_q))) for x in (hidden, own)), strict=True):
                sums += divergences(model.logits(part), y, log_q)
            positions += len(own)
        model.train()
        for name, value in zip(("unigram", "uniform", "empirical"), sums / positions, strict=True):
            self.tensors[name][self.places[step]] = value


def divergences(z: torch.Tensor, targets: torch.Tensor, log_q: torch.Tensor) -> torch.Tensor:
    """Sums over positions of KL(q || p), KL(uniform || p) and -log p(y): z n x V, targets n, log_q V -> 3, float64."""
    z, log_q = z.double(), log_q.double()
    normaliser = z.logsumexp(dim=1)
    q, types = log_q.exp(), z.shape[1]
    unigram = (q * log_q).sum() - z @ q + normaliser
    uniform = -z.mean(dim=1) + normaliser - float(np.log(types))
    empirical = normaliser - z.gather(1, targets[:, None]).squeeze(1)
    return torch.stack([unigram.sum(), uniform.sum(), empirical.sum()])


def observed_series(steps: list[int], names: tuple[str, ...], device) -> dict[str, torch.Tensor]:
    """`steps`, and for each name an array of the same length, NaN until measured."""
    arrays = {name: torch.full((len(steps),), torch.nan, dtype=torch.float64, device=device) for name in names}
    return {"steps": torch.tensor(steps, device=device)} | arrays


def chosen_steps(
    name: str, end: int, steps: list[int] | None = None, every: int | None = None, number: int | None = None
) -> list[int]:
    """Increasing numbers of steps, from 0 (the initial model) to at most `end`.

    steps: a list; steps after `end`, which a shorter training does not reach, are left out. every: multiples of this,
    and the end. number: about this many, evenly spaced on a logarithmic axis, with 0 and the end. Raises UserError
    unless exactly one of the three is given.
    """
    if sum(option is not None for option in (steps, every, number)) != 1:
        raise UserError(f"observe: {name} needs one of steps (a list), every and number")
    if steps is not None:
        return sorted({step for step in steps if 0 <= step <= end})
    if every is not None:
        return [*range(0, end, every), end]
    return sorted({0, end} | {round(step) for step in np.geomspace(1, end, max(2, number - 1))})
