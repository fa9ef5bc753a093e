"""Models: what turns token ids into hidden vectors, and the output layer that all methods share.

May import core.
"""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from raretok.core.code_digest import model_module
from raretok.core.errors import UserError
from raretok.core.tensor_files import load_tensors

# The value of `model.name` in an experiment's settings, which names the module, and the class in it; that of its
# options has the same name and `Config`.
MODELS = {"decoder": "Decoder", "encoder_decoder": "EncoderDecoder"}


def build_model(settings: dict, vocabulary: int, seed: int | None = None) -> torch.nn.Module:
    """The model that `settings` (an experiment's `model`) describe, over `vocabulary` types.

    Raises UserError for a name or an option that does not exist.
    """
    options = dict(settings)
    name = options.pop("name", None)
    if name not in MODELS:
        raise UserError(f"model.name is {name!r}; it can be {', '.join(MODELS)}")
    module = importlib.import_module(model_module(name))
    model_class, config_class = getattr(module, MODELS[name]), getattr(module, f"{MODELS[name]}Config")
    try:
        config = config_class(vocabulary=vocabulary, **options)
    except TypeError as error:
        raise UserError(f"model ({name}) is configured wrongly: {error}") from None
    return model_class(config, seed=seed)


def plain_weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """What `load_model` reads: the state dict, with a parametrised matrix as the matrix that its parts make.

    While a method trains a matrix in parts (`torch.nn.utils.parametrize`), the state dict names those.
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
    """The mean of several checkpoints' weights, name by name, summed in float64, each in its own type again.

    Raises ValueError where there are none or their names differ.
    """
    if not checkpoints or any(weights.keys() != checkpoints[0].keys() for weights in checkpoints):
        raise ValueError("checkpoints to average must be at least one, all of the same model")
    average = {}
    for name, first in checkpoints[0].items():
        total = first.double()
        for weights in checkpoints[1:]:
            total = total + weights[name].double()
        average[name] = (total / len(checkpoints)).to(first.dtype)
    return average


def load_model(path: Path | str, settings: dict, vocabulary: int, device: str = "cpu") -> torch.nn.Module:
    """A trained model in evaluation mode, its weights from the safetensors file `path`.

    Raises UserError when the weights are not of such a model.
    """
    model = build_model(settings, vocabulary)
    tensors, _ = load_tensors(Path(path), f"delete {Path(path).parent} to train this run again")
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise UserError(f"{path} does not hold the weights of this model: {reason}") from None
    return model.eval().requires_grad_(False).to(device)
