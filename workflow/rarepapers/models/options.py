"""Options that all models have; needs no torch."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from rarepapers.core.errors import UserError
from rarepapers.core.type_check import Limit, NotNegative, Positive

BelowOne = Annotated[NotNegative, Limit("exclusiveMaximum", 1)]


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Options of a model over a vocabulary of V types.

    translates: whether it reads sentence pairs (source and target) instead of single sequences.
    """

    translates: ClassVar[bool] = False

    vocabulary: Positive
    heads: Positive
    # A multiple of `heads`.
    width: Positive
    # Maximum number of positions; of an encoder-decoder, on each side.
    context: Positive
    # On embeddings and residual branches.
    dropout: BelowOne = 0.0
    # On attention weights; null: the value of `dropout`.
    attention_dropout: BelowOne | None = None

    def __post_init__(self):
        if self.positions == "sinusoidal" and self.width < 4:
            raise UserError(f"model.width is {self.width}; sinusoidal positions need at least 4")
        if self.width % self.heads:
            raise UserError(f"model.width is {self.width}, which {self.heads} heads (model.heads) do not divide")
