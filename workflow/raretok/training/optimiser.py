"""AdamW over a whole model, with the readings of separated embeddings.

Matrices and embeddings (also positions) decay, norms and biases do not, as in nanoGPT.
"""

import torch

from raretok.errors import UserError
from raretok.methods import Method


class RowAdamW:
    """AdamW of one matrix whose rows with an all-zero gradient are left alone.

    Equal to a list of vectors, one a row, each updated by `torch.optim.AdamW` with its gradient set to None
    where it is all zero: such a row keeps its moments, its step count and its weights, decay included.
    State: `exp_avg` and `exp_avg_sq` as the matrix, `row_steps` (one count a row).
    """

    def __init__(self, parameter: torch.Tensor, betas: tuple[float, float], eps: float, weight_decay: float):
        self.parameter = parameter
        self.betas, self.eps, self.weight_decay = betas, eps, weight_decay
        self.exp_avg = torch.zeros_like(parameter)
        self.exp_avg_sq = torch.zeros_like(parameter)
        self.row_steps = torch.zeros(len(parameter), 1, dtype=parameter.dtype, device=parameter.device)

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Update the rows that have a gradient."""
        beta1, beta2 = self.betas
        gradient = self.parameter.grad
        touched = gradient.ne(0).any(dim=1, keepdim=True)
        self.row_steps += touched
        self.exp_avg.copy_(torch.where(touched, torch.lerp(self.exp_avg, gradient, 1 - beta1), self.exp_avg))
        # A zero gradient must not decay the second moment of a row that is left alone.
        self.exp_avg_sq.copy_(
            torch.where(
                touched,
                (self.exp_avg_sq * beta2).addcmul(gradient, gradient, value=1 - beta2),
                self.exp_avg_sq,
            )
        )
        # Rows never touched have row_steps 0; any count avoids 0/0 there, and their update is masked anyway.
        steps = self.row_steps.clamp_min(1).double()
        size = (learning_rate / (1 - beta1**steps)).to(gradient.dtype)
        scale = (1 - beta2**steps).sqrt().to(gradient.dtype)
        update = size * self.exp_avg / (self.exp_avg_sq.sqrt() / scale + self.eps)
        decayed = self.parameter * (1 - learning_rate * self.weight_decay)
        self.parameter.copy_(torch.where(touched, decayed - update, self.parameter))

    def state(self) -> dict[str, torch.Tensor]:
        """Tensors that a checkpoint keeps."""
        return {"exp_avg": self.exp_avg, "exp_avg_sq": self.exp_avg_sq, "row_steps": self.row_steps}

    def load(self, state: dict[str, torch.Tensor]) -> None:
        """Take over the tensors of a checkpoint."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])


class Optimiser:
    """All updates of one training: `torch.optim.AdamW`, and row-wise AdamW for matrices that skip rows."""

    def __init__(self, model: torch.nn.Module, method: Method, settings: dict):
        """settings: an experiment's `training.optimiser`, {name, betas, eps, weight_decay}."""
        if settings["name"] != "adamw":
            raise UserError(f"training.optimiser.name is {settings['name']!r}; it can be adamw")
        betas, eps, decay = tuple(settings["betas"]), settings["eps"], settings["weight_decay"]
        update = method.embedding_update
        decayed, plain, self.rows = [], [], {}
        for name, parameter in model.named_parameters():
            is_embedding = parameter is model.input_weight or parameter is model.output_weight
            untied_output = is_embedding and parameter is not model.input_weight
            own_decay = 0.0 if untied_output and not update.decays_untied_output else decay
            if is_embedding and update.skips_rows:
                self.rows[name] = RowAdamW(parameter, betas, eps, own_decay)
            elif parameter.dim() >= 2 and own_decay:
                decayed.append(parameter)
            else:
                plain.append(parameter)
        self.parameters = list(model.parameters())
        self.adamw = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": decay}, {"params": plain, "weight_decay": 0.0}],
            lr=0.0,
            betas=betas,
            eps=eps,
            fused=True,
        )

    def step(self, learning_rate: float) -> None:
        """Update every parameter and clear the gradients."""
        for group in self.adamw.param_groups:
            group["lr"] = learning_rate
        self.adamw.step()
        for rows in self.rows.values():
            rows.step(learning_rate)
        for parameter in self.parameters:
            parameter.grad = None

    def state(self) -> dict[str, torch.Tensor]:
        """Tensors that a checkpoint keeps, by name."""
        tensors = {
            f"adamw.{index}.{name}": tensor
            for index, entry in self.adamw.state_dict()["state"].items()
            for name, tensor in entry.items()
        }
        for matrix, rows in self.rows.items():
            tensors |= {f"rows.{matrix}.{name}": tensor for name, tensor in rows.state().items()}
        return tensors

    def load(self, tensors: dict[str, torch.Tensor]) -> None:
        """Take over the tensors of a checkpoint."""
        entries: dict[int, dict] = {}
        for key, tensor in tensors.items():
            kind, rest = key.split(".", 1)
            if kind == "adamw":
                index, name = rest.split(".")
                entries.setdefault(int(index), {})[name] = tensor
        self.adamw.load_state_dict(self.adamw.state_dict() | {"state": entries})
        for matrix, rows in self.rows.items():
            rows.load({name: tensors[f"rows.{matrix}.{name}"] for name in rows.state()})
