"""The parts of a public GPT-2 that the effective margin needs: its embedding matrix and final layer norm.

Other tensors of the checkpoint are not read, because safetensors files are opened lazily.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch.nn import functional as F

from rarepapers.core.errors import UserError

INIT_STD = 0.02
EPSILON = 1e-5


@dataclass(frozen=True)
class FinalLayers:
    """Tied embeddings (N x d) and the final layer norm's weight and bias (d each), float32."""

    embeddings: torch.Tensor
    norm_weight: torch.Tensor
    norm_bias: torch.Tensor

    def normalise(self, x: torch.Tensor) -> torch.Tensor:
        """The final layer norm of x (... x d), epsilon 1e-5 as GPT-2."""
        return F.layer_norm(x, x.shape[-1:], self.norm_weight, self.norm_bias, EPSILON)

    def to(self, device: str) -> "FinalLayers":
        """A copy on another device."""
        return FinalLayers(self.embeddings.to(device), self.norm_weight.to(device), self.norm_bias.to(device))


def initialise(vocabulary: int, width: int, seed: int) -> FinalLayers:
    """GPT-2's default initialisation: embeddings N(0, 0.02), layer norm weight 1 and bias 0."""
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.empty(vocabulary, width).normal_(0.0, INIT_STD, generator=generator)
    return FinalLayers(embeddings, torch.ones(width), torch.zeros(width))


def load_final_layers(path: Path | str, vocabulary: int, width: int) -> FinalLayers:
    """Read `wte.weight`, `ln_f.weight` and `ln_f.bias`, with or without the prefix `transformer.`.

    path: a `model.safetensors`, or its folder. Raises UserError if the file is missing or broken, lacks a tensor, or
    has sizes other than N x d.
    """
    shapes = {"wte.weight": (vocabulary, width), "ln_f.weight": (width,), "ln_f.bias": (width,)}
    path = Path(path)
    if path.is_dir():
        path = path / "model.safetensors"
    if not path.is_file():
        raise UserError(f"there is no GPT-2 checkpoint {path}; set gpt2_weights to skip, hub or the right folder")
    try:
        with safe_open(path, framework="pt") as checkpoint:
            names = set(checkpoint.keys())
            tensors = [checkpoint.get_tensor(_find(short, names, path)).float() for short in shapes]
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} is not a readable safetensors file: {error}") from None
    for (short, expected), tensor in zip(shapes.items(), tensors, strict=True):
        if tuple(tensor.shape) != expected:
            raise UserError(f"{short} of {path} has shape {tuple(tensor.shape)}, but {expected} was configured")
    return FinalLayers(*tensors)


def _find(short: str, names: set[str], path: Path) -> str:
    for name in (short, f"transformer.{short}"):
        if name in names:
            return name
    raise UserError(f"{path} holds no tensor {short}, so it is not a GPT-2 checkpoint")
