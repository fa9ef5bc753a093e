"""`PatchedTrainer`: what a trainer of transformers or TRL needs for a patched model, in one base class."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer, TrainerCallback
from transformers.trainer_utils import get_last_checkpoint

from raretok.losses import process_of
from raretok.patching import Patched, patch_of, targets_of


class PatchedTrainer:
    """A base class that makes a trainer of transformers or TRL train on the loss of a model patched by `raretok.patch`.

        class RareTrainer(PatchedTrainer, Trainer): ...
        class RareSFTTrainer(PatchedTrainer, SFTTrainer): ...

    It uses the model's own loss, and announces the targets of every step, which gates need with gradient accumulation.
    The counts of a gate are part of its checkpoints, one file per process, so that
    `train(resume_from_checkpoint=...)` ends as an unbroken training does.

    Raises ValueError for options with which the trainer would compute another loss (`label_smoothing_factor`,
    `compute_loss_func`, TRL's `loss_type="dft"`), for batches without labels, as those of DPO, and for a model that is
    not patched. Warns if a gate without counts
    continues a training, and (`NoEffectWarning`) at the end of a training in which no step was counted.
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
        # The checkpoint that the training continues.
        self.resumed_from: Path | None = None
        self.add_callback(_Watch(self))

    @property
    def patched(self) -> Patched:
        """The handle of the model's patch; raises ValueError if there is none."""
        found = patch_of(self.model)
        if found is None:
            raise ValueError(f"{type(self.model).__name__} is not patched; call raretok.patch before you train")
        return found

    def train(self, resume_from_checkpoint: str | bool | None = None, **named: Any):
        """As `Trainer.train`; also restores the counts of a gate."""
        folder = resume_from_checkpoint
        if folder is True:
            folder = get_last_checkpoint(self.args.output_dir)
        self.resumed_from = Path(folder) if folder else None
        if self.resumed_from is not None:
            self._restore(self.resumed_from / _state_name())
        return super().train(resume_from_checkpoint=resume_from_checkpoint, **named)

    def _restore(self, path: Path) -> None:
        if path.exists():
            try:
                self.patched.criterion.load_state_dict(torch.load(path, weights_only=True))
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from None

    def get_batch_samples(self, *arguments: Any, **named: Any) -> tuple[list, Any]:
        """The micro-batches of the next step, as in `Trainer`, after announcing their targets to the loss."""
        batches, number = super().get_batch_samples(*arguments, **named)
        self.patched.criterion.begin_step(_targets(batches))
        return batches, number

    def compute_loss(self, *arguments: Any, **named: Any):
        """The model's own loss, as `Trainer` reads it; TRL's trainers would compute one from hidden vectors."""
        return Trainer.compute_loss(self, *arguments, **named)


class _Watch(TrainerCallback):
    """Saves the counts of a gate with each checkpoint; warns of one that lost its own, and if no step was counted."""

    def __init__(self, trainer: PatchedTrainer):
        self.trainer = trainer

    def on_train_begin(self, args, state, control, **_) -> None:
        criterion = self.trainer.patched.criterion
        if criterion.state_dict() and criterion.steps < state.global_step:
            warnings.warn(
                f"the training continues at step {state.global_step}, but the gate has counted {criterion.steps} "
                f"steps: {self.trainer.resumed_from} has no {_state_name()}, which PatchedTrainer writes; the gate "
                "counts anew",
                stacklevel=2,
            )

    def on_save(self, args, state, control, **_) -> None:
        held = self.trainer.patched.criterion.state_dict()
        if held:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            folder.mkdir(parents=True, exist_ok=True)
            torch.save(held, folder / _state_name())

    def on_train_end(self, args, state, control, **_) -> None:
        self.trainer.patched.warn_if_unused()


def _state_name() -> str:
    """The file of this process's counts in a checkpoint; with another number of processes, it has none."""
    rank, size = process_of()
    return f"raretok-{rank}-of-{size}.pt"


def _targets(batches: Iterable[dict]) -> list[torch.Tensor]:
    """Targets of micro-batches, each B x T; raises ValueError for batches without labels."""
    if not all("labels" in batch or "shift_labels" in batch for batch in batches):
        raise ValueError(
            "the batches have no labels; PatchedTrainer trains language models on labels, and for a loss made of "
            "log-probabilities (DPO, GRPO) write one with raretok.token_log_probs"
        )
    return [targets_of(batch) for batch in batches]
