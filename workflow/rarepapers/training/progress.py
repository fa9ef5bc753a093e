"""Progress of a training in numbers."""

import dataclasses
import math
from dataclasses import dataclass

# Approximate number of rows of training loss in the history, whatever the number of steps.
HISTORY_ROWS = 100
HISTORY_COLUMNS = ("step", "split", "loss", "learning_rate", "gradient_norm", "tokens")


@dataclass
class Progress:
    """The numbers in a training's state: saved as JSON and restored exactly.

    best_loss, best_bleu: validation scores of the best checkpoint, at `best_step`. kept: steps of the last validated
    checkpoints, whose average is the final model if `training.average` is set. seconds: wall time. cpu_seconds: CPU
    time of all threads.
    """

    step: int = 0
    best_loss: float = math.inf
    best_bleu: float | None = None
    best_step: int = 0
    kept: list = dataclasses.field(default_factory=list)
    tokens: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    resumes: int = 0
    validated_step: int = 0
    history: list = dataclasses.field(default_factory=list)

    def note(self, scores: dict[str, float], select: str, average: int) -> bool:
        """Record the scores of a validation; returns whether this checkpoint is the best so far.

        scores: by split, as named in the history. select: `loss` or `bleu`. average: number of checkpoints to keep.
        """
        self.validated_step = self.step
        self.history += [[self.step, split, score, "", "", self.tokens] for split, score in scores.items()]
        self.kept = [*self.kept, self.step][-average:] if average else []
        loss, bleu = scores["valid"], scores.get("valid_bleu")
        is_best = self.best_bleu is None or bleu > self.best_bleu if select == "bleu" else loss < self.best_loss
        if is_best:
            self.best_loss, self.best_bleu, self.best_step = loss, bleu, self.step
        return is_best
