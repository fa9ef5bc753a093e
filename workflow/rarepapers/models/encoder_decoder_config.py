"""Options of an encoder-decoder; needs no torch."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from rarepapers.core.type_check import AboveZero, Positive
from rarepapers.models.options import ModelOptions


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderConfig(ModelOptions):
    """A transformer for translation."""

    translates: ClassVar[bool] = True

    encoder_layers: Positive
    decoder_layers: Positive
    # Width inside a feed-forward layer; null: four times the model's (docs/deviations.md, N2: the literal reading of
    # natural_bias is 512 or 256 with the same width).
    inner: Positive | None = None
    activation: Literal["relu", "gelu"] = "relu"
    # Layer norms before each residual addition and once at the end (pre), or after each addition (post).
    norm: Literal["pre", "post"] = "pre"
    # Of linear layers and layer norms.
    bias: bool = True
    # Which of the source, target and output matrices are shared: all (three_way), target and output (two_way, decoder),
    # source and target (encoder_decoder; natural_bias, N6), or none.
    tying: Literal["three_way", "two_way", "decoder", "encoder_decoder", "none"]
    # fairseq's fixed table (sinusoidal), not part of the weights, or a learned vector per position on each side.
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    # Multiply token embeddings by the square root of the width before positions are added.
    scale_embedding: bool = True
    # null: no bias in the output layer. Otherwise its initial value: zero, the log of the training counts (unigram), or
    # the log of the corpus's `external_counts` of this name.
    output_bias: str | None = None
    # Initialisation of the output matrix: like every embedding (normal), or with standard deviation width ** -0.5,
    # truncated at two of them (truncated; N3), even if it is tied to an input matrix.
    output_init: Literal["normal", "truncated"] = "normal"
    # Norm of the output matrix that is scaled to the norm of the log-unigram bias (N4).
    output_scale: Literal["none", "frobenius", "spectral"] = "none"
    # Standard deviation of every embedding; null: width ** -0.5.
    embedding_std: AboveZero | None = None
    # Initialisation of linear layers. xavier: as in fairseq, uniform within sqrt(6 / (inputs + outputs)), with a gain
    # of 1 / sqrt(2) for queries, keys and values. normal: N(0, 0.02).
    linear_init: Literal["xavier", "normal"] = "xavier"

    @property
    def shares_inputs(self) -> bool:
        """Whether source and target have one input matrix."""
        return self.tying in ("three_way", "encoder_decoder")

    @property
    def tied(self) -> bool:
        """Whether the output matrix is the decoder's input matrix."""
        return self.tying in ("three_way", "two_way", "decoder")
