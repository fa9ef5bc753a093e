"""Decoding of a split by beam search."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from rarepapers.models.beam_search import translate


@dataclass(frozen=True)
class Decoding:
    """Decoding settings: hypotheses per sentence, and the exponent of length normalisation."""

    beam: int
    length_exponent: float

    @property
    def described(self) -> str:
        """The settings as a signature field."""
        return f"beam:{self.beam}|length_exponent:{self.length_exponent:g}"


def decode(model: torch.nn.Module, pairs, decoding: Decoding) -> list[list[int]]:
    """Ids of the best hypothesis of each source line of `pairs` (`prepared_pairs.Pairs`), without special ends."""
    sources = [np.asarray(pairs.source[first:last]) for first, last in pairwise(pairs.source_offsets)]
    return translate(model, sources, decoding.beam, decoding.length_exponent)
