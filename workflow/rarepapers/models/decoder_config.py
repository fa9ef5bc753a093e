"""Options of a decoder; needs no torch."""

from dataclasses import dataclass
from typing import Literal

from rarepapers.core.type_check import AboveZero, Positive
from rarepapers.models.options import ModelOptions


@dataclass(frozen=True, kw_only=True)
class DecoderConfig(ModelOptions):
    """A GPT-2 style decoder."""

    layers: Positive
    # Of linear layers and layer norms.
    bias: bool = False
    # One matrix for input and output embeddings.
    tied: bool = True
    # A learned vector per position, or fairseq's fixed table (sinusoidal), which is not part of the weights.
    positions: Literal["learned", "sinusoidal"] = "learned"
    # Multiply token embeddings by the square root of the width before positions are added.
    scale_embedding: bool = False
    # Standard deviation of every embedding, and of every matrix if linear_init is normal; projections into the residual
    # stream then get init_std / sqrt(2 layers), as in GPT-2.
    init_std: AboveZero = 0.02
    # xavier: as in fairseq, uniform within sqrt(6 / (inputs + outputs)), with a gain of 1 / sqrt(2) for queries, keys
    # and values.
    linear_init: Literal["normal", "xavier"] = "normal"
    # null: no bias in the output layer. Otherwise its initial value: zero, or the log of the training counts (unigram).
    output_bias: Literal["zero", "unigram"] | None = None
