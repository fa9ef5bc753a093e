"""Initial values of matrices: those of an encoder-decoder, and the bound of Xavier initialisation for all models."""

import math

import torch
from torch import nn

from rarepapers.models.encoder_decoder_config import EncoderDecoderConfig

# Standard deviation of linear layers with `linear_init: normal`.
LINEAR_STD = 0.02
# Linear layers that hold several square matrices stacked vertically, and their number.
STACKED = {"qkv.weight": 3, "key_value.weight": 2, "query.weight": 1}


def draw_matrix(
    name: str, shape: torch.Size, config: EncoderDecoderConfig, is_output: bool, generator: torch.Generator
) -> torch.Tensor:
    """Initial values of the matrix `name`, of `shape`, as `config` says; is_output: it is the output matrix."""
    values = torch.empty(shape)
    if "embedding" in name:
        std = config.width**-0.5
        if is_output and config.output_init == "truncated":
            return nn.init.trunc_normal_(values, 0.0, std, -2 * std, 2 * std, generator=generator)
        return values.normal_(0.0, std if config.embedding_std is None else config.embedding_std, generator=generator)
    if config.linear_init == "normal":
        return values.normal_(0.0, LINEAR_STD, generator=generator)
    bound = xavier_bound(name, shape)
    return values.uniform_(-bound, bound, generator=generator)


def xavier_bound(name: str, shape: torch.Size) -> float:
    """Bound of a linear layer's matrix (outputs x inputs) in fairseq's Xavier initialisation.

    Queries, keys and values are square matrices, each with a gain of 1 / sqrt(2), stacked or not.
    """
    outputs, inputs = shape
    for suffix, parts in STACKED.items():
        if name.endswith(suffix):
            return math.sqrt(6 / (outputs // parts + inputs)) / math.sqrt(2)
    return math.sqrt(6 / (inputs + outputs))
