"""AdamW for several models at once, on stacked parameters: one call per group with the same weight decay."""

from collections.abc import Sequence
from itertools import groupby

import torch

from rarepapers.training.optimiser import Optimiser, RowAdamW, fused_adamw


class StackedOptimiser:
    """The optimiser of M trainings of one shape.

    The moments of each training's `Optimiser` become slices of stacked tensors, so its state is saved and loaded as
    usual. Trainings with the same `update_and_decay` of a parameter must be adjacent.
    """

    def __init__(self, parameters: dict[str, torch.Tensor], optimisers: Sequence[Optimiser]):
        """parameters: stacked, M x ..., by name. optimisers: one per training; betas and eps are those of the first."""
        self.parameters = parameters
        self.betas, self.eps = optimisers[0].betas, optimisers[0].eps
        # By weight decay: name, slice of trainings, and moments.
        self.groups: dict[float, list[tuple[str, slice, dict[str, torch.Tensor]]]] = {}
        self.rows: list[tuple[str, slice, RowAdamW]] = []
        for name, parameter in parameters.items():
            for (update, decay), found in groupby(
                range(len(optimisers)), key=lambda k: update_and_decay(optimisers[k], name)
            ):
                models = list(found)
                part = slice(models[0], models[-1] + 1)
                own = [optimisers[k] for k in models]
                if update:
                    self.rows.append((name, part, stacked_rows(name, parameter.detach()[part], own)))
                else:
                    moments = stacked_moments(name, parameter.detach()[part], own)
                    self.groups.setdefault(decay, []).append((name, part, moments))

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Update every parameter and clear the gradients."""
        for weight_decay, entries in self.groups.items():
            fused_adamw(
                [self.parameters[name].detach()[part] for name, part, _ in entries],
                [self.parameters[name].grad[part] for name, part, _ in entries],
                [moments for *_, moments in entries],
                (learning_rate, *self.betas, self.eps, weight_decay),
            )
        for name, part, rows in self.rows:
            rows.parameter.grad = self.parameters[name].grad[part]
            rows.step(learning_rate)
            rows.parameter.grad = None
        for parameter in self.parameters.values():
            parameter.grad = None


def update_and_decay(optimiser: Optimiser, name: str) -> tuple[str, float]:
    """An optimiser's treatment of a parameter: the `embedding_update` of its rows ("" for none), and weight decay."""
    if name in optimiser.rows:
        return repr(optimiser.update), optimiser.rows[name].weight_decay
    return "", next(decay for decay, names in optimiser.groups.items() if name in names)


def stacked_rows(name: str, part: torch.Tensor, optimisers: Sequence[Optimiser]) -> RowAdamW:
    """One RowAdamW over the rows of several matrices, `part` (k x V x d), whose state the optimisers share."""
    first = optimisers[0].rows[name]
    rows = RowAdamW(part, first.betas, first.eps, first.weight_decay, first.update)
    for place, optimiser in enumerate(optimisers):
        own = optimiser.rows[name]
        own.exp_avg, own.exp_avg_sq, own.row_steps = (
            tensor[place] for tensor in (rows.exp_avg, rows.exp_avg_sq, rows.row_steps)
        )
    return rows


def stacked_moments(name: str, part: torch.Tensor, optimisers: Sequence[Optimiser]) -> dict[str, torch.Tensor]:
    """Moments of one parameter of several models, `part` (k x ...), whose slices the optimisers share."""
    step = torch.zeros((), dtype=torch.float32, device=part.device)
    moments = {"exp_avg": torch.zeros_like(part), "exp_avg_sq": torch.zeros_like(part), "step": step}
    for place, optimiser in enumerate(optimisers):
        own = {key: moments[key][place] for key in ("exp_avg", "exp_avg_sq")}
        optimiser.moments[name] = own | {"step": step}
    return moments
