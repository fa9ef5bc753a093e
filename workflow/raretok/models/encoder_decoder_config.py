"""Sizes and choices of an encoder-decoder; no torch."""

from dataclasses import dataclass

from raretok.core.errors import UserError

CHOICES = {
    "activation": ("relu", "gelu"),
    "norm": ("pre", "post"),
    "tying": ("three_way", "two_way", "decoder", "encoder_decoder", "none"),
    "positions": ("sinusoidal", "learned"),
    "output_init": ("normal", "truncated"),
    "output_scale": ("none", "frobenius", "spectral"),
    "linear_init": ("xavier", "normal"),
}


@dataclass(frozen=True)
class EncoderDecoderConfig:
    """Sizes and choices of an encoder-decoder.

    vocabulary: number of types V of the joint vocabulary. encoder_layers, decoder_layers, heads, width: the usual.
    context: longest source and longest target. inner: width inside the feed-forward parts; None: four times `width`
    (inventory N2: the literal reading of natural_bias is `inner` 512 or 256 with the same width).
    dropout: on embeddings and residual branches; attention_dropout: on attention weights (None: as dropout).
    norm: layer norms before (`pre`, and one at the end) or after (`post`) each residual addition. bias: whether
    linear layers and layer norms have biases.
    tying: `three_way`: one matrix for source, target and output; `two_way`, also called `decoder`: one for target and
    output; `encoder_decoder`: one for source and target (natural_bias, N6); `none`: three.
    positions: fairseq's `sinusoidal` table, no part of the weights, or a `learned` vector for each, on either side.
    scale_embedding: token embeddings are multiplied by sqrt(width) before positions are added.
    output_bias: None, or where `set_output_bias` lets it start: `zero`, `unigram` (counts of the training targets), or
    the name of counts from elsewhere, which training reads.
    embedding_std: of every embedding; None: width ** -0.5. output_init: the output matrix likewise (`normal`), or
    `truncated`: standard deviation width ** -0.5 cut at two of them (N3), also where it is an input matrix.
    output_scale: which norm of the output matrix `set_output_bias` makes equal to the log-unigram bias's (N4).
    linear_init: matrices uniform within sqrt(6 / (inputs + outputs)) as fairseq's (`xavier`), queries, keys and
    values each within 1 / sqrt(2) of that, or N(0, 0.02) (`normal`).
    """

    vocabulary: int
    encoder_layers: int
    decoder_layers: int
    heads: int
    width: int
    context: int
    inner: int | None = None
    dropout: float = 0.0
    attention_dropout: float | None = None
    activation: str = "relu"
    norm: str = "pre"
    bias: bool = True
    tying: str = "three_way"
    positions: str = "sinusoidal"
    scale_embedding: bool = True
    output_bias: str | None = None
    output_init: str = "normal"
    output_scale: str = "none"
    embedding_std: float | None = None
    linear_init: str = "xavier"

    def __post_init__(self):
        for key, known in CHOICES.items():
            if getattr(self, key) not in known:
                raise UserError(f"model.{key} is {getattr(self, key)!r}; it can be {' or '.join(known)}")
        if self.positions == "sinusoidal" and self.width < 4:
            raise UserError(f"model.width is {self.width}; sinusoidal positions need at least 4")
        if self.width % self.heads:
            raise UserError(f"model.width is {self.width}, which {self.heads} heads (model.heads) do not divide")

    @property
    def shares_inputs(self) -> bool:
        """Whether source and target have one input matrix."""
        return self.tying in ("three_way", "encoder_decoder")

    @property
    def tied(self) -> bool:
        """Whether the output matrix is the decoder's input matrix."""
        return self.tying in ("three_way", "two_way", "decoder")
