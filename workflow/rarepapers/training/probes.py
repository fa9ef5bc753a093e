"""Probes of gradients, rare types and weights, and `build_observations`."""

import torch

from rarepapers.core.errors import UserError
from rarepapers.training.distribution_probes import Divergence, OutputBias
from rarepapers.training.probe_interface import MicroBatch, Observation
from raretok.output.transfers import put

# Number of products of rare rows and hidden vectors in memory at a time.
PRODUCTS_AT_ONCE = 2**24


class GradientNorms(Observation):
    """Norms of the three parts of each token's embedding gradient (stop_jostling, section 4.2).

    For each step and token i, g1 is the gradient through the input embedding (context alignment), g2 the output
    gradient from positions with target i, and g3 the output gradient from all other positions; all are taken before
    clipping and before a gate (which the paper never combines). Tensors, summed over steps, (V,) each:

        sum_aligned       |g1| + |g2|
        sum_marginal      |g3|
        sum_ratio         (|g1| + |g2|) / |g3|, over steps with |g3| > 0
        sum_aligned_zero  |g1| + |g2|, over steps with |g3| = 0
        zero_steps        number of steps with |g3| = 0

    and `steps`, the number of steps, a scalar.
    """

    SUMS = ("sum_aligned", "sum_marginal", "sum_ratio", "sum_aligned_zero", "zero_steps")
    needs_gradients = True

    def __init__(self, model: torch.nn.Module, training: dict):
        if not model.config.tied:
            raise UserError("observe: gradient_norms needs tied embeddings (model.tied: true)")
        if training.get("accumulation", 1) != 1:
            raise UserError("observe: gradient_norms needs the whole step in one batch (training.accumulation: 1)")
        shape, device = len(model.output_weight), model.output_weight.device
        self.tensors = {name: torch.zeros(shape, dtype=torch.float64, device=device) for name in self.SUMS}
        self.tensors["steps"] = torch.zeros((), dtype=torch.float64, device=device)

    @torch.no_grad()
    def look(self, batch: MicroBatch) -> None:
        marginal = batch.logits_gradient.clone()
        own = marginal.gather(1, batch.targets[:, None])
        marginal.scatter_(1, batch.targets[:, None], 0.0)
        zeros = batch.hidden.new_zeros(marginal.shape[1], batch.hidden.shape[1])
        parts = (
            zeros.index_add(0, batch.inputs, batch.input_gradient),
            zeros.index_add(0, batch.targets, own * batch.hidden),
            marginal.T @ batch.hidden,
        )
        g1, g2, g3 = (part.norm(dim=1).double() for part in parts)
        aligned, zero = g1 + g2, g3 == 0
        self.tensors["sum_aligned"] += aligned
        self.tensors["sum_marginal"] += g3
        self.tensors["sum_ratio"] += (aligned / g3).masked_fill(zero, 0.0)
        self.tensors["sum_aligned_zero"] += aligned * zero
        self.tensors["zero_steps"] += zero
        self.tensors["steps"] += 1


class RareTypes(Observation):
    """Number of rare types, |V_r|, at each of the first steps (agg, figure 4): `sizes` (steps,)."""

    needs_gate = True

    def __init__(self, model: torch.nn.Module, training: dict, steps: int):
        number = min(steps, training["steps"])
        self.tensors = {"sizes": torch.zeros(number, dtype=torch.int64, device=model.output_weight.device)}

    def begin(self, step: int, gate) -> None:
        if step < len(self.tensors["sizes"]):
            self.tensors["sizes"][step] = int(gate.rare().sum())


class RareAlignment(Observation):
    """Alignment of rare rows w_r with the hidden vectors h_t of the same step (agps, Eq. 8).

    At steps every, 2 every, ... (counted from 1), over all rare types r and positions t, before the step changes w:
    `negative_share`, the share of w_r . h_t below 0, and `mean`, their mean (NaN if no type is rare); `steps`, the
    numbers of these steps.
    """

    needs_gate = True

    def __init__(self, model: torch.nn.Module, training: dict, every: int):
        number, device = training["steps"] // every, model.output_weight.device
        if not number:
            raise UserError(f"observe: rare_alignment looks every {every} steps, but training has {training['steps']}")
        self.every = every
        self.tensors = {
            "steps": torch.arange(1, number + 1, device=device) * every,
            "negative_share": torch.zeros(number, dtype=torch.float64, device=device),
            "mean": torch.zeros(number, dtype=torch.float64, device=device),
        }
        # Index in the tensors and ids of the rare types of the current step; None if it is not observed.
        self.place: int | None = None
        self.rare: torch.Tensor | None = None

    def begin(self, step: int, gate) -> None:
        due = (step + 1) % self.every == 0
        self.place = (step + 1) // self.every - 1 if due else None
        if due:
            device = self.tensors["mean"].device
            self.rare = put(gate.rare().nonzero().flatten(), device)
            # Number of products below 0, their sum, number of all products.
            self.sums = torch.zeros(3, dtype=torch.float64, device=device)

    @torch.no_grad()
    def look(self, batch: MicroBatch) -> None:
        if self.place is None:
            return
        rows = batch.weight[self.rare].float()
        for hidden in batch.hidden.float().split(max(1, PRODUCTS_AT_ONCE // max(1, len(rows)))):
            products = hidden @ rows.T
            number = torch.tensor(products.numel(), device=products.device)
            self.sums += torch.stack([(products < 0).sum().double(), products.sum(dtype=torch.float64), number])

    def end(self) -> None:
        if self.place is not None:
            negative, total, number = self.sums
            self.tensors["negative_share"][self.place] = negative / number
            self.tensors["mean"][self.place] = total / number


class Snapshots(Observation):
    """The output matrix after chosen steps (a list `steps`, or every `every` steps); kept in files, not in tensors."""

    def __init__(
        self, model: torch.nn.Module, training: dict, steps: list[int] | None = None, every: int | None = None
    ):
        if (steps is None) == (every is None):
            raise UserError("observe: snapshots needs either steps (a list) or every (a number)")
        end = training["steps"]
        self.tensors = {}
        self.steps = list(range(every, end + 1, every)) if every else sorted(set(steps))
        # Without any step, `every` is beyond the end, or the list is empty.
        outside = [step for step in self.steps if not 0 <= step <= end] if self.steps else [every]
        if outside:
            raise UserError(f"observe: snapshots asks for step {outside[0]}, but training has steps 0 to {end}")


OBSERVATIONS = {
    "gradient_norms": GradientNorms,
    "rare_types": RareTypes,
    "rare_alignment": RareAlignment,
    "snapshots": Snapshots,
    "output_bias": OutputBias,
    "divergence": Divergence,
}


def build_observations(entries: list, model: torch.nn.Module, training: dict, gate) -> dict[str, Observation]:
    """The observations of a run's `observe`, by name.

    entries: names, or mappings with `name` and options. training: the run's settings of that name. gate: the state of
    its gate, or None. Raises UserError for an unknown or unsuitable observation or option.
    """
    observations = {}
    for entry in entries:
        options = {"name": entry} if isinstance(entry, str) else dict(entry)
        name = options.pop("name", None)
        if name not in OBSERVATIONS:
            raise UserError(f"observe names {name!r}; it can be {', '.join(OBSERVATIONS)}")
        if name in observations:
            raise UserError(f"observe names {name} twice; once is enough")
        if OBSERVATIONS[name].needs_gate and gate is None:
            raise UserError(f"observe: {name} needs a method with a gate, which says what types are rare")
        try:
            observations[name] = OBSERVATIONS[name](model, training, **options)
        except TypeError as error:
            raise UserError(f"observe: {name} is configured wrongly: {error}") from None
    return observations
