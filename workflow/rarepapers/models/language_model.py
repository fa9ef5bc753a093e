"""What decoders and encoder-decoders have in common: token embeddings, the output layer's parameters, recomputation."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class LanguageModel(nn.Module):
    """A model with `token_embedding`, and an output matrix that may be tied to it.

    checkpoint_activations: keep only the input of each block, and recompute the rest in the backward pass, which gives
    the same numbers with less memory. output_bias: V, trained, 0 until `set_output_bias`; None for a model without.
    """

    checkpoint_activations = False

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.token_embedding = nn.Embedding(config.vocabulary, config.width)

    def add_output(self) -> None:
        """Register the output layer's own parameters, which are the last ones."""
        if not self.config.tied:
            self.output_embedding = nn.Parameter(torch.empty(self.config.vocabulary, self.config.width))
        bias = None if self.config.output_bias is None else nn.Parameter(torch.zeros(self.config.vocabulary))
        self.register_parameter("output_bias", bias)

    @property
    def input_weight(self) -> torch.Tensor:
        """Embedding matrix of the (decoder's) input, V x d."""
        return self.token_embedding.weight

    @property
    def output_weight(self) -> torch.Tensor:
        """Output embedding matrix, V x d; the input matrix if they are tied."""
        return self.token_embedding.weight if self.config.tied else self.output_embedding

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Plain logits of hidden vectors (... x d -> ... x V), the same for every method."""
        return F.linear(hidden, self.output_weight, self.output_bias)

    def through(self, block: nn.Module, *inputs: torch.Tensor | None) -> torch.Tensor:
        """The output of a block, whose activations are recomputed in the backward pass if the model says so."""
        if self.checkpoint_activations and torch.is_grad_enabled():
            return checkpoint(block, *inputs, use_reentrant=False)
        return block(*inputs)
