"""AdamW for a whole model, with an optional rule for the rows of the embeddings (`embedding_update`).

Matrices and embeddings (including positions) have weight decay, norms and biases do not, as in nanoGPT.
"""

import torch
from torch.optim.adamw import adamw

from rarepapers.core.errors import UserError
from raretok.methods import Method


class RowAdamW:
    """AdamW on the rows of a matrix (V x d), modified by an `embedding_update`.

    With `skips_rows` it equals `torch.optim.AdamW` on a list of vectors, one per row, with the gradient set to None
    where it is all zero: such a row keeps its moments, its step count and its weights, without decay. With
    `second_moment` a row is divided by the root of the returned second moment. State: `exp_avg` and `exp_avg_sq` of the
    matrix's shape, `row_steps` (one count per row).
    """

    def __init__(
        self, parameter: torch.Tensor, betas: tuple[float, float], eps: float, weight_decay: float, update: object
    ):
        self.parameter = parameter
        self.betas, self.eps, self.weight_decay, self.update = betas, eps, weight_decay, update
        self.exp_avg = torch.zeros_like(parameter)
        self.exp_avg_sq = torch.zeros_like(parameter)
        self.row_steps = parameter.new_zeros(*parameter.shape[:-1], 1)

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Update all rows, or those with a gradient."""
        beta1, beta2 = self.betas
        gradient = self.parameter.grad
        touched = torch.ones_like(self.row_steps, dtype=torch.bool)
        if self.update.skips_rows:
            touched = gradient.ne(0).any(dim=-1, keepdim=True)
        self.row_steps += touched
        self.exp_avg.copy_(torch.where(touched, torch.lerp(self.exp_avg, gradient, 1 - beta1), self.exp_avg))
        # A zero gradient must not decay the second moment of a row that is skipped.
        self.exp_avg_sq.copy_(
            torch.where(
                touched,
                (self.exp_avg_sq * beta2).addcmul(gradient, gradient, value=1 - beta2),
                self.exp_avg_sq,
            )
        )
        # Rows without any step so far have row_steps 0; 1 avoids 0/0, and their change is masked.
        steps = self.row_steps.clamp_min(1).double()
        size = (learning_rate / (1 - beta1**steps)).to(gradient.dtype)
        scale = (1 - beta2**steps).sqrt().to(gradient.dtype)
        second_moment = self.update.second_moment(self.exp_avg_sq)
        change = size * self.exp_avg / (second_moment.sqrt() / scale + self.eps)
        decayed = self.parameter * (1 - learning_rate * self.weight_decay)
        self.parameter.copy_(torch.where(touched, decayed - change, self.parameter))

    def state(self) -> dict[str, torch.Tensor]:
        """Tensors that a checkpoint keeps."""
        return {"exp_avg": self.exp_avg, "exp_avg_sq": self.exp_avg_sq, "row_steps": self.row_steps}


class Optimiser:
    """The optimiser of one training: fused AdamW, and row-wise AdamW for matrices with an `embedding_update`.

    It uses torch's functional AdamW, which `torch.optim.AdamW` also calls: creating an object of that class imports
    torch's compiler, which takes a second per job. State: `exp_avg`, `exp_avg_sq` and `step` of every parameter.
    """

    def __init__(self, model: torch.nn.Module, method: Method, settings: dict):
        """settings: an experiment's `training.optimiser`, {name, betas, eps, weight_decay}."""
        if settings["name"] != "adamw":
            raise UserError(f"training.optimiser.name is {settings['name']!r}; it can be adamw")
        self.betas, self.eps = tuple(settings["betas"]), settings["eps"]
        decay = settings["weight_decay"]
        self.model, self.update = model, method.embedding_update
        update_rows = self.update.skips_rows or self.update.shares_second_moment
        # Names of parameters by weight decay.
        self.groups: dict[float, list[str]] = {}
        self.rows: dict[str, RowAdamW] = {}
        self.parameters = dict(model.named_parameters())
        input_weight, output_weight = model.input_weight, model.output_weight
        # The matrices with one row per type; a single one if tied.
        self.embeddings = [p for p in self.parameters.values() if p is input_weight or p is output_weight]
        for name, parameter in self.parameters.items():
            is_embedding = parameter is input_weight or parameter is output_weight
            untied_output = is_embedding and parameter is not input_weight
            decays = parameter.dim() >= 2 and (self.update.decays_untied_output or not untied_output)
            # Factors of a parametrised matrix have an orthogonality penalty, which decay would counteract.
            decays = decays and ".parametrizations." not in name
            own_decay = decay if decays else 0.0
            if is_embedding and update_rows:
                self.rows[name] = RowAdamW(parameter, self.betas, self.eps, own_decay, self.update)
            else:
                self.groups.setdefault(own_decay, []).append(name)
        self.moments = {
            name: {
                "exp_avg": torch.zeros_like(self.parameters[name]),
                "exp_avg_sq": torch.zeros_like(self.parameters[name]),
                # Fused AdamW reads the count on the parameter's device.
                "step": torch.zeros((), dtype=torch.float32, device=self.parameters[name].device),
            }
            for names in self.groups.values()
            for name in names
        }

    @torch.no_grad()
    def step(self, learning_rate: float, frozen: torch.Tensor | None = None) -> None:
        """Update every parameter and clear the gradients.

        frozen: types (V, bool) whose rows of the embedding matrices keep their values, without weight decay.
        """
        kept = [(matrix, matrix.clone()) for matrix in self.embeddings] if frozen is not None else []
        for weight_decay, names in self.groups.items():
            moments = [self.moments[name] for name in names]
            adamw(
                [self.parameters[name] for name in names],
                [self.parameters[name].grad for name in names],
                [moment["exp_avg"] for moment in moments],
                [moment["exp_avg_sq"] for moment in moments],
                [],
                [moment["step"] for moment in moments],
                fused=True,
                amsgrad=False,
                maximize=False,
                beta1=self.betas[0],
                beta2=self.betas[1],
                lr=learning_rate,
                weight_decay=weight_decay,
                eps=self.eps,
            )
        for rows in self.rows.values():
            rows.step(learning_rate)
        for matrix, before in kept:
            matrix.copy_(torch.where(frozen[:, None], before, matrix))
        if self.update.changes_rows:
            self.update.after_step(self.model.output_weight)
        for parameter in self.parameters.values():
            parameter.grad = None

    def state(self) -> dict[str, torch.Tensor]:
        """Tensors that a checkpoint keeps, `<parameter>/<moment>`."""
        moments = self.moments | {name: rows.state() for name, rows in self.rows.items()}
        return {f"{name}/{key}": tensor for name, entry in moments.items() for key, tensor in entry.items()}

    def load(self, tensors: dict[str, torch.Tensor]) -> None:
        """Take over the tensors of a checkpoint."""
        for name, tensor in self.state().items():
            tensor.copy_(tensors[name])
