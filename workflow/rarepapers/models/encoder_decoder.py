"""A transformer encoder-decoder, pre- or post-norm, with four ways to tie its three embedding matrices.

Shapes: B sentences, S source and T target positions (padding, id 1, at the end), d width, V vocabulary.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from rarepapers.core.errors import UserError
from rarepapers.core.special_types import PAD
from rarepapers.models.blocks import DecoderBlock, EncoderBlock
from rarepapers.models.decoding_cache import Cache, LayerCache
from rarepapers.models.encoder_decoder_config import EncoderDecoderConfig
from rarepapers.models.initialisation import draw_matrix
from rarepapers.models.language_model import LanguageModel
from rarepapers.models.layers import dropout, sinusoidal_table


class EncoderDecoder(LanguageModel):
    """Source ids (B x S) and target ids (B x T) to hidden vectors (B x T x d); `logits` maps those to B x T x V.

    Results at other positions do not depend on padding.
    """

    def __init__(self, config: EncoderDecoderConfig, seed: int | None = None):
        """Initialise from `seed` (None: leave it to the caller, who loads weights).

        Random numbers are drawn parameter by parameter from a separate generator, first for matrices that every tying
        has; biases use none. So models with one seed that differ only in the output bias otherwise start from the same
        weights, and so do those that differ in tying, unless a tied matrix is truncated.
        """
        super().__init__(config)
        if config.positions == "learned":
            self.source_position_embedding = nn.Embedding(config.context, config.width)
            self.position_embedding = nn.Embedding(config.context, config.width)
        else:
            self.register_buffer("position_table", sinusoidal_table(config.context, config.width), persistent=False)
        self.encoder = nn.ModuleList(EncoderBlock(config) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderBlock(config) for _ in range(config.decoder_layers))
        # Post-norm blocks end with their own norm.
        last_norm = nn.LayerNorm if config.norm == "pre" else nn.Identity
        self.encoder_norm = last_norm(config.width, bias=config.bias)
        self.decoder_norm = last_norm(config.width, bias=config.bias)
        if not config.shares_inputs:
            self.source_embedding = nn.Embedding(config.vocabulary, config.width)
        self.add_output()
        if seed is not None:
            self.initialise(seed)

    @property
    def source_weight(self) -> torch.Tensor:
        """Embedding matrix of the encoder's input, V x d; the decoder's if they are shared."""
        return self.token_embedding.weight if self.config.shares_inputs else self.source_embedding.weight

    def initialise(self, seed: int) -> None:
        """Reinitialise all matrices and embeddings (see the config); norms are 1, biases 0."""
        generator = torch.Generator().manual_seed(seed)
        last = ("source_embedding.weight", "output_embedding")
        order = sorted(self.named_parameters(), key=lambda item: last.index(item[0]) if item[0] in last else -1)
        for name, parameter in order:
            if parameter.dim() > 1:
                is_output = parameter is self.output_weight
                parameter.data.copy_(draw_matrix(name, parameter.shape, self.config, is_output, generator))
            elif name.endswith("bias"):
                parameter.data.zero_()

    @torch.no_grad()
    def set_output_bias(self, log_unigram: torch.Tensor, outside: torch.Tensor | None = None) -> None:
        """Start the output bias from the types' log probabilities, and scale W to their norm if configured.

        log_unigram: of the training targets, V. outside: of another text, V, for a bias that starts from it. This is
        called for every model: with `output_scale` the reference is always the norm of `log_unigram`
        (docs/deviations.md, N4), so that W is the same for all. A bias `zero` stays 0 (N7). Calling it again changes
        nothing. Raises ValueError for another number of types.
        """
        start = log_unigram if outside is None else outside
        for values in (log_unigram, start):
            if values.shape != (self.config.vocabulary,):
                raise ValueError(f"log_unigram has shape {tuple(values.shape)}, not ({self.config.vocabulary},)")
        if self.config.output_scale != "none":
            order = "fro" if self.config.output_scale == "frobenius" else 2
            weight = self.output_weight
            weight.mul_(log_unigram.to(weight).norm() / torch.linalg.matrix_norm(weight, order))
        if self.config.output_bias not in (None, "zero"):
            self.output_bias.copy_(start)

    def forward(self, source: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """Hidden vectors after the last norm, B x T x d, of source ids B x S and decoder inputs B x T.

        Every source must hold at least one id that is not padding.
        """
        return self.decode(inputs, *self.encode(source))

    def encode(self, source: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Memory (B x S x d) and its mask: B x 1 x 1 x S, true except at padding; None: no padding."""
        mask = (source != PAD)[:, None, None]
        # Attention is faster without a mask. On a GPU, checking for padding would wait for it.
        if mask.device.type == "cpu" and mask.all():
            mask = None
        # The module is not called, so that its hooks see only the decoder's inputs.
        positions = self._positions("source_position_embedding", 0, source.shape[1])
        x = self._embedded(F.embedding(source, self.source_weight), positions)
        for block in self.encoder:
            x = self.through(block, x, mask)
        return self.encoder_norm(x), mask

    def decode(self, inputs: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Hidden vectors after the last norm, B x T x d, of decoder inputs B x T given `encode`'s results."""
        positions = self._positions("position_embedding", 0, inputs.shape[1])
        x = self._embedded(self.token_embedding(inputs), positions)
        for block in self.decoder:
            x = self.through(block, x, memory, mask)
        return self.decoder_norm(x)

    def cache(self, memory: torch.Tensor, mask: torch.Tensor | None, slots: int) -> Cache:
        """A cache for `step`, with the keys and values of cross-attention from the results of `encode`.

        slots: maximum number of positions of all hypotheses of a sentence.
        """
        layers = [LayerCache(*block.cross_attention.keys_values(memory), slots) for block in self.decoder]
        return Cache(layers, mask, memory.dtype)

    def step(self, inputs: torch.Tensor, cache: Cache) -> torch.Tensor:
        """The last position of `decode` for the last ids of k hypotheses per sentence; B x k -> B x k x d."""
        cache.begin(inputs.shape[1])
        positions = self._positions("position_embedding", cache.steps - 1, cache.steps)
        x = self._embedded(self.token_embedding(inputs), positions)
        for block, layer in zip(self.decoder, cache.layers, strict=True):
            x = block.step(x, layer)
        return self.decoder_norm(x)

    def _embedded(self, vectors: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        if self.config.scale_embedding:
            vectors = vectors * math.sqrt(self.config.width)
        return dropout(vectors + positions, self.config.dropout, self.training)

    def _positions(self, name: str, start: int, stop: int) -> torch.Tensor:
        if stop > self.config.context:
            raise UserError(f"{stop} positions do not fit model.context, which is {self.config.context}")
        learned = self.config.positions == "learned"
        return (getattr(self, name).weight if learned else self.position_table)[start:stop]
