"""`PatchedTrainer`: what a trainer of transformers or TRL needs for a patched model, in one base class."""

from collections.abc import Iterable
from typing import Any

import torch
from transformers import Trainer, TrainerCallback

from raretok.library.patching import Patched, patch_of, targets_of


class PatchedTrainer:
    """A base class that makes a trainer of transformers or TRL train on the loss of a model patched by `raretok.patch`.

        class RareTrainer(PatchedTrainer, Trainer): ...
        class RareSFTTrainer(PatchedTrainer, SFTTrainer): ...

    It uses the model's own loss, and announces the targets of every step, which gates need with gradient accumulation.
    Raises ValueError for options with which the trainer would compute another loss (`label_smoothing_factor`,
    `compute_loss_func`, TRL's `loss_type="dft"`), and for a model that is not patched. Warns (`NoEffectWarning`) at the
    end of a training in which no step was counted.
    """

    def __init__(self, *arguments: Any, **named: Any):
        super().__init__(*arguments, **named)
        if self.args.label_smoothing_factor:
            raise ValueError(
                "label_smoothing_factor makes the trainer compute a loss of its own; leave it out, and patch the model "
                "with CrossEntropy(label_smoothing=...)"
            )
        if self.compute_loss_func is not None:
            raise ValueError("compute_loss_func replaces the loss of the patched model; leave it out")
        loss_type = vars(self.args).get("loss_type", "nll")
        if loss_type != "nll":
            raise ValueError(f"loss_type={loss_type!r} replaces the loss of the patched model; leave it out")
        self.add_callback(_Watch(self))

    @property
    def patched(self) -> Patched:
        """The handle of the model's patch; raises ValueError if there is none."""
        found = patch_of(self.model)
        if found is None:
            raise ValueError(f"{type(self.model).__name__} is not patched; call raretok.patch before you train")
        return found

    def get_batch_samples(self, *arguments: Any, **named: Any) -> tuple[list, Any]:
        """The micro-batches of the next step, as in `Trainer`, after announcing their targets to the loss."""
        batches, number = super().get_batch_samples(*arguments, **named)
        self.patched.criterion.begin_step(_targets(batches))
        return batches, number

    def compute_loss(self, *arguments: Any, **named: Any):
        """The model's own loss, as `Trainer` reads it; TRL's trainers would compute one from hidden vectors."""
        return Trainer.compute_loss(self, *arguments, **named)


class _Watch(TrainerCallback):
    """Says so if a training counted no step."""

    def __init__(self, trainer: PatchedTrainer):
        self.trainer = trainer

    def on_train_end(self, args, state, control, **_) -> None:
        self.trainer.patched.warn_if_unused()


def _targets(batches: Iterable[dict]) -> list[torch.Tensor]:
    return [targets_of(batch) for batch in batches]
