"""Interfaces of a method's parts: loss, gate, penalty, perturbation, embedding update.

A part inherits from one of these classes, is a frozen dataclass whose fields are its parameters, and defines what it
does; everything else has the default of a part that does nothing special. No part imports torch at the top of its file.

Shapes: n positions, d width, V types. `outputs` is a `raretok.output.outputs.Outputs`, `facts` a `TrainingFacts`.
"""

from collections.abc import Callable
from typing import ClassVar


class Part:
    """What all parts have.

    kind: the key of the part in a config, and its argument of `OutputLoss`. needs_counts: whether `start` needs the
    training counts of `facts`; without counts such a part is refused.
    """

    kind: ClassVar[str]
    needs_counts: ClassVar[bool] = False

    def start(self, facts):
        """The part in use, before the first step; the part itself if it needs nothing."""
        return self


class Loss(Part):
    """A loss per position.

    combines_with_gates: False for a loss that compares positions with each other. is_cross_entropy: whether its
    gradient is softmax minus the target, smoothed by `label_smoothing`. drops_logits: whether it is the cross-entropy
    of the logits that `least_kept` keeps; `is_strict`: a logit equal to the bound is dropped, too. has_margin_of_norms:
    whether its margin depends on norms, which a soft cap changes.
    """

    kind: ClassVar[str] = "loss"
    combines_with_gates: ClassVar[bool] = True
    is_cross_entropy: ClassVar[bool] = False
    label_smoothing: float = 0.0
    drops_logits: bool = False
    is_strict: ClassVar[bool] = False
    has_margin_of_norms: bool = False

    def of_batch(self, targets, types: int):
        """What the loss computes from all targets of a micro-batch, n ids below `types`, of all processes; or None."""
        return None

    def __call__(self, outputs):
        """The loss of each position, n, with gradient."""
        raise NotImplementedError

    def least_kept(self, outputs, target_logits):
        """The bound of each position, n x 1: smaller logits are dropped. target_logits: n x 1."""
        raise NotImplementedError

    def of_kept(self, nll, mass, number: Callable):
        """Of losses that drop logits: value (n), divisor of the gradient (n or None), and the target's own factor.

        nll: plain, n. mass: probability of the kept types, n. number: returns how many are kept, n.
        """
        raise NotImplementedError


class LossOf(Loss):
    """A loss in use that is a function of the outputs, such as one with weights from the training counts."""

    def __init__(self, function: Callable):
        self.function = function

    def __call__(self, outputs):
        return self.function(outputs)


class Gate(Part):
    """A gate on the gradient of the output embedding; `start` returns its `GateState`.

    needs_tokens_per_step: whether it starts only when the number of targets per step is known, and has no rare types
    before the first step. freezes_rows: whether the optimiser must leave rows alone (`GateState.frozen`).
    """

    kind: ClassVar[str] = "gate"
    needs_counts: ClassVar[bool] = True
    needs_tokens_per_step: ClassVar[bool] = False
    freezes_rows: bool = False

    def start(self, facts) -> "GateState":
        """The gate's state before the first step; raises ValueError if no type, or every type, is rare."""
        raise NotImplementedError


class GateState:
    """A gate during training. Its tensors are on the CPU."""

    def begin_step(self, targets) -> None:
        """Count the targets of a step, 64-bit ids of this process, before its first micro-batch."""
        raise NotImplementedError

    def rare(self):
        """Which types are rare, V (bool)."""
        raise NotImplementedError

    def gates(self, targets):
        """Gates, 2 x V, and classes of the targets, n (1: rare target); None while the gate does nothing."""
        raise NotImplementedError

    def frozen(self):
        """Rows that this step must not change, V (bool), the same in all steps; None: it may change all."""
        return None

    def derived(self) -> dict:
        """Numbers in use that do not appear in the settings."""
        return {}

    def state(self) -> dict:
        """Tensors for a checkpoint."""
        raise NotImplementedError

    def load(self, state: dict) -> None:
        """Restore the tensors of a checkpoint."""
        raise NotImplementedError


class Penalty(Part):
    """A penalty that is added to the loss: on parameters (`__call__`), or per position (`token_loss`).

    on_tokens: whether it has a value per position. gated: whether a gate also acts on its gradient; only with
    on_tokens. needs_inputs: whether it needs the token sequences. has_closed_form: whether `closed_form` gives its
    gradient beside cross-entropy. until: number of steps with the penalty; None: all. makes_matrix: whether
    `parametrise` makes the output matrix from factors, which have no rows.
    """

    kind: ClassVar[str] = "penalty"
    on_tokens: ClassVar[bool] = False
    gated: bool = False
    needs_inputs: ClassVar[bool] = False
    has_closed_form: ClassVar[bool] = False
    until: int | None = None
    makes_matrix: ClassVar[bool] = False

    def __call__(self, outputs):
        """The penalty on parameters, a scalar with gradient."""
        raise NotImplementedError

    def token_loss(self, outputs):
        """The penalty of each position, n, with gradient, from the model's own logits."""
        raise NotImplementedError

    def closed_form(self, outputs, probability: Callable, log_normaliser):
        """The penalty and its gradient for `raretok.output.softmax_gradient.cross_entropy_gradient`."""
        raise NotImplementedError

    def parametrise(self, model) -> None:
        """Replace parameters of the model before training."""


class Perturbation(Part):
    """A change of the logits that the loss sees, but not the penalties."""

    kind: ClassVar[str] = "perturbation"

    def __call__(self, outputs):
        """The changed logits, n x V."""
        raise NotImplementedError


class EmbeddingUpdate(Part):
    """How the optimiser treats the rows of the embedding matrices.

    skips_rows: whether rows without gradient are left alone. shares_second_moment: whether `second_moment` replaces
    Adam's. changes_rows: whether `after_step` changes the output matrix. decays_untied_output: whether an untied output
    matrix has weight decay.
    """

    kind: ClassVar[str] = "embedding_update"
    skips_rows: bool = False
    shares_second_moment: ClassVar[bool] = False
    changes_rows: ClassVar[bool] = False
    decays_untied_output: bool = True

    def parametrise(self, model) -> None:
        """Replace parameters of the model before training."""

    def second_moment(self, own):
        """The second moment that Adam divides by, ... x V x d or ... x 1 x d; own: of each row, ... x V x d."""
        return own

    def after_step(self, weight) -> None:
        """Change the output matrix, ... x V x d, in place."""
