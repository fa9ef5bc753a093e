"""Initialisation of the output bias."""

import numpy as np
import torch

from raretok.core.errors import UserError
from raretok.methods.unigram import log_unigram


def start_output_bias(model: torch.nn.Module, settings: dict, counts, outside_counts: np.ndarray | None) -> None:
    """Initialise the output bias of a model as its `settings` say, if the model has such a setting.

    counts: of the training targets, (V,). outside_counts: of another text, or None. Raises UserError if counts of
    another text are needed and missing, or have another shape.
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
