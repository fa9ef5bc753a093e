"""Methods: losses, gates, penalties and perturbations, each the dataclass of a file; `kind` says which.

No file here imports torch at the top, because a workflow that reads the dataclasses runs on machines without it.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from raretok.methods.parts import EmbeddingUpdate, Gate, Loss, Penalty, Perturbation


@dataclass(frozen=True)
class TrainingFacts:
    """Facts about a run that its method's parts use before the first step.

    counts: how often each type is a target of the training split (numpy array, V integers). special: ids that are never
    rare (padding, end of line, ...). tokens_per_step: mean number of targets per step, over all processes; None until
    the first step if the training code does not know it. steps_per_epoch: steps of one pass over the training split;
    None: derived from counts and tokens_per_step. rare: how a scaled run derives the paper's numbers (`training.rare`
    of its settings: alpha, share, mass, tokens), or None for the printed numbers. device: of the state of losses,
    penalties and perturbations; a gate's is on the CPU. padding: the target id of positions without a target, or None.
    source_counts: like counts, for the source side of a translation, since a rare target type can be a frequent source
    word. earlier_targets: regenerates this process's targets of an earlier step (from 0); if None, a gate that needs
    them must keep them. group: the processes whose targets a gate counts (a `counting.Group`); None: all.
    """

    counts: object
    special: tuple[int, ...]
    tokens_per_step: int | float | None = None
    steps_per_epoch: int | None = None
    rare: dict | None = None
    device: str = "cpu"
    padding: int | None = None
    source_counts: object = None
    earlier_targets: Callable | None = None
    group: object = None


@dataclass(frozen=True)
class Method:
    """A method: a loss, an embedding update, and optional parts; raises ValueError if they do not combine."""

    loss: Loss
    embedding_update: EmbeddingUpdate
    gate: Gate | None = None
    penalty: Penalty | None = None
    perturbation: Perturbation | None = None
    training_temperature: float = 1.0

    def __post_init__(self):
        if not 0 < self.training_temperature < float("inf"):
            raise ValueError(f"training_temperature is {self.training_temperature}; it must be above 0 and finite")
        if self.gate is not None and not self.loss.combines_with_gates:
            raise ValueError("a gate and the contrastive loss do not combine; leave one of them out")
        update, freezes = self.embedding_update, self.gate is not None and self.gate.freezes_rows
        by_rows = update.changes_rows or update.skips_rows or update.shares_second_moment
        if (freezes or by_rows) and self.penalty is not None and self.penalty.makes_matrix:
            raise ValueError(
                "the penalty makes the output matrix from factors, which have no rows to leave alone; "
                "leave out the penalty, or the frozen gate and the embedding_update"
            )
        if freezes and update.changes_rows:
            raise ValueError("the embedding_update changes rows that the gate leaves alone; leave one of them out")

    def started(self, facts: TrainingFacts) -> "Method":
        """This method with its loss, penalty and perturbation started, if they need counts."""
        parts = {"loss": self.loss, "penalty": self.penalty, "perturbation": self.perturbation}
        return dataclasses.replace(self, **{kind: part and part.start(facts) for kind, part in parts.items()})
