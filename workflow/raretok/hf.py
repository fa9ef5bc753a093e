"""For trainers of Hugging Face: `PatchedTrainer`; needs transformers."""

from raretok.library.trainers import PatchedTrainer

__all__ = ["PatchedTrainer"]
