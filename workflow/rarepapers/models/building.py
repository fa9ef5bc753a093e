"""Building models from settings, and loading and averaging their weights."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from rarepapers.core.code_digest import model_module
from rarepapers.core.errors import UserError
from rarepapers.core.tensor_files import load_tensors
from rarepapers.models import build_config, class_name


def build_model(settings: dict, vocabulary: int, seed: int | None = None) -> torch.nn.Module:
    """The model of `settings` (an experiment's `model`) over `vocabulary` types; raises UserError if they are wrong."""
    config = build_config(settings, vocabulary)
    module = importlib.import_module(model_module(settings["name"]))
    return getattr(module, class_name(settings["name"]))(config, seed=seed)


def plain_weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The weights that `load_model` reads: the state dict, with parametrised matrices as whole matrices.

    While a method trains a matrix in parts (`torch.nn.utils.parametrize`), the state dict holds the parts.
    """
    weights = {}
    for name, tensor in model.state_dict().items():
        owner, is_part, rest = name.partition("parametrizations.")
        if is_part:
            attribute = rest.split(".")[0]
            name, tensor = owner + attribute, getattr(model.get_submodule(owner.rstrip(".")), attribute).detach()
        weights[name] = tensor
    return weights


def average_weights(checkpoints: Sequence[Mapping[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """The mean of one model's weights at several steps, summed in float64 and cast back to each tensor's type."""
    average = {}
    for name, first in checkpoints[0].items():
        total = first.double()
        for weights in checkpoints[1:]:
            total = total + weights[name].double()
        average[name] = (total / len(checkpoints)).to(first.dtype)
    return average


def load_model(path: Path | str, settings: dict, vocabulary: int, device: str = "cpu") -> torch.nn.Module:
    """A trained model in evaluation mode, with weights from the safetensors file `path`.

    Raises UserError if the weights belong to another model.
    """
    model = build_model(settings, vocabulary)
    tensors, _ = load_tensors(Path(path), f"delete {Path(path).parent} to train this run again")
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise UserError(f"{path} does not hold the weights of this model: {reason}") from None
    return model.eval().requires_grad_(False).to(device)
