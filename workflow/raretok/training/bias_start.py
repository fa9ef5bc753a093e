"""Where the output bias of a model starts."""

import numpy as np
import torch

from raretok.core.errors import UserError
from raretok.methods.unigram import log_unigram


def start_output_bias(model: torch.nn.Module, settings: dict, counts, outside_counts: np.ndarray | None) -> None:
    """Let the output bias of a model that has a choice of it start where `settings` (of the model) say.

    counts: of the training's targets, V. outside_counts: of another text, or None. Raises UserError where the bias
    starts from counts of another text and there are none, or they are of other types.
    """
    if not hasattr(model, "set_output_bias"):
        return
    start, outside = settings.get("output_bias"), None
    if start not in (None, "zero", "unigram"):
        if outside_counts is None:
            raise UserError(f"model.output_bias is {start!r}, but no counts were given; say --counts FILE.npy")
        if outside_counts.shape != (len(counts),):
            raise UserError(
                f"the file of --counts has shape {outside_counts.shape}, but the vocabulary has {len(counts):,} types; "
                "count with the tokenizer of this corpus"
            )
        outside = log_unigram(outside_counts)
    model.set_output_bias(log_unigram(counts), outside)
