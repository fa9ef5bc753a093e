"""Training tasks: batches and validation for each kind of corpus.

A task has `tokens_per_step` and `steps_per_epoch`, and provides the micro-batches of a step, all its targets,
validation scores, and the facts that gates need. The batches of a step are a pure function of (seed, step), so earlier
targets can be regenerated instead of stored.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch.nn import functional as F

from rarepapers.data.text.block_batches import TRAIN, VALID, Blocks, draw_blocks
from raretok.methods import TrainingFacts
from raretok.output.transfers import put

# Number of logits in memory at a time in validation and probes: 2^24, 64 MiB.
LOGITS_AT_ONCE = 2**24
# Default ignore_index of `torch.nn.functional.cross_entropy`.
NO_TARGET = -100

# Input of a model: ids B x T, or a tuple of such tensors whose last one matches the targets.
Inputs = torch.Tensor | tuple[torch.Tensor, ...]
# Inputs on the device and targets on the CPU, B x T each; the counts of targets decide tensor sizes.
Batch = tuple[Inputs, torch.Tensor]


class Task:
    """Base class of the tasks for all kinds of corpus."""

    # Mean number of targets per step, without padding.
    tokens_per_step: int | float
    steps_per_epoch: int
    # Ids that are never rare.
    special: tuple[int, ...] = ()
    # The padding id, if there is one.
    padding: int | None = None

    def __init__(self, settings: dict, device: str):
        """settings: a run's settings."""
        training = settings["training"]
        self.context = settings["model"]["context"]
        self.accumulation = training.get("accumulation", 1)
        self.validation = training["validation"]
        self.rare = training.get("rare")
        self.seed = settings["seed"]
        self.device = device

    def micro_batches(self, step: int) -> list[Batch]:
        """Inputs and targets of step `step`, one pair per micro-batch."""
        raise NotImplementedError

    def targets(self, step: int) -> torch.Tensor:
        """All targets of step `step`, flat, without padding, on the CPU."""
        raise NotImplementedError

    def target_tokens(self, step: int) -> int:
        """Number of targets of step `step`, without padding."""
        return self.tokens_per_step

    def counts(self) -> np.ndarray:
        """Target counts of each type in an epoch of training, (V,), integers."""
        raise NotImplementedError

    def source_counts(self) -> np.ndarray | None:
        """Counts of each type in the source side of the training text, (V,); None if there is none."""
        return None

    def validation_batches(self, step: int) -> Iterator[tuple]:
        """Inputs and targets for validation after `step` steps, as arrays."""
        raise NotImplementedError

    def facts(self) -> TrainingFacts:
        """Facts about the training that gates need."""
        return TrainingFacts(
            counts=self.counts(),
            special=self.special,
            tokens_per_step=self.tokens_per_step,
            steps_per_epoch=self.steps_per_epoch,
            rare=self.rare,
            device=self.device,
            padding=self.padding,
            source_counts=self.source_counts(),
            earlier_targets=self.targets,
        )

    def derived(self) -> dict:
        """Numbers for the run's record that follow from data and settings."""
        return {}

    def validate(self, model: torch.nn.Module, step: int, must_stop: Callable[[], object]) -> dict[str, float] | None:
        """Validation scores by the name of their split in the history; `valid` is the loss.

        None if must_stop() became true in the meantime.
        """
        loss = self.validation_loss(model, step, must_stop)
        return None if loss is None else {"valid": loss}

    def validation_loss(self, model: torch.nn.Module, step: int, must_stop: Callable[[], object]) -> float | None:
        """Mean plain cross-entropy over the validation batches, the same for every method.

        None if must_stop() became true between two batches.
        """
        model.eval()
        sums = torch.zeros(2, dtype=torch.float64, device=self.device)
        for block in self.validation_batches(step):
            if must_stop():
                model.train()
                return None
            inputs, targets = (self.put(part) for part in block)
            sums[0] += negative_log_likelihood(model, inputs, targets, self.padding)
            sums[1] += targets.numel() if self.padding is None else (targets != self.padding).sum()
        model.train()
        total, positions = sums.tolist()
        return total / positions

    def sample(self, positions: int) -> Iterator[tuple[Inputs, torch.Tensor]]:
        """A fixed part of the validation text with about this many targets, on the device."""
        seen = 0
        for block in self.validation_batches(0):
            if seen >= positions:
                return
            inputs, targets = (self.put(part) for part in block)
            yield inputs, targets
            seen += targets.numel()

    def put(self, block) -> Inputs:
        """An array, or a tuple of arrays, as tensors on the training device."""
        if isinstance(block, tuple):
            return tuple(self.put(part) for part in block)
        return put(torch.from_numpy(block), self.device)


def hidden_of(model: Callable, inputs: Inputs) -> torch.Tensor:
    """Hidden vectors of a batch's inputs, B x T x d."""
    return model(*inputs) if isinstance(inputs, tuple) else model(inputs)


@torch.no_grad()
def negative_log_likelihood(
    model: torch.nn.Module, inputs: Inputs, targets: torch.Tensor, padding: int | None = None
) -> torch.Tensor:
    """Sum over all positions of -log softmax(z)[y] for plain logits, a float64 scalar; targets B x T.

    Logits are computed for a chunk of positions at a time, in float32 whatever the model's precision. padding:
    positions with this target do not count.
    """
    hidden, targets = hidden_of(model, inputs).flatten(0, 1), targets.flatten()
    rows = max(1, LOGITS_AT_ONCE // len(model.output_weight))
    ignored = NO_TARGET if padding is None else padding
    total = torch.zeros((), dtype=torch.float64, device=hidden.device)
    with torch.autocast(hidden.device.type, enabled=False):
        for part, own in zip(hidden.float().split(rows), targets.split(rows), strict=True):
            total += F.cross_entropy(model.logits(part), own, reduction="sum", ignore_index=ignored)
    return total


class BlockTask(Task):
    """Blocks of one text: a step has `accumulation` micro-batches of `size` sequences of `context` tokens."""

    def __init__(self, settings: dict, device: str):
        """settings: a run's settings."""
        super().__init__(settings, device)
        self.size = settings["training"]["batch_size"]
        self.sequences = self.size * self.accumulation
        self.tokens_per_step = self.sequences * self.context

    def draw(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets of step `step`, sequences x context each."""
        raise NotImplementedError

    def micro_batches(self, step: int) -> list[Batch]:
        """Inputs and targets of step `step`, one pair per micro-batch, batch_size x context each."""
        inputs, targets = self.draw(step)
        return list(zip(self.put(inputs).split(self.size), torch.from_numpy(targets).split(self.size), strict=True))

    def targets(self, step: int) -> torch.Tensor:
        """All targets of step `step`, flat."""
        return torch.from_numpy(self.draw(step)[1]).flatten()


class CharacterTask(BlockTask):
    """Next-character prediction in two languages, high-resource and low-resource, over one text.

    The low-resource language is the same text with `types` added to every id, so the vocabulary size is 2 x types.
    """

    def __init__(self, corpus, settings: dict, device: str):
        """corpus: from `data.prepared_corpus.load_manifest`. settings: a run's settings."""
        super().__init__(settings, device)
        self.types = corpus.types
        self.type_counts = corpus.counts
        # One block and the character after it.
        self.texts = {
            TRAIN: corpus.tokens("train", at_least=self.context + 1),
            VALID: corpus.tokens("valid", at_least=self.context + 1),
        }
        self.probability = settings["corpus"]["low_resource_probability"]
        self.steps_per_epoch = max(1, len(self.texts[TRAIN]) // self.tokens_per_step)

    def draw(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Random blocks of the training text, each in one of the two languages."""
        return self._blocks(TRAIN, self.sequences, step, 0)

    def counts(self) -> np.ndarray:
        """Counts in the training text, divided between the languages."""
        share = self.probability
        return np.concatenate([self.type_counts * (1 - share), self.type_counts * share]).round().astype(np.int64)

    def validation_batches(self, step: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Random mixed-language batches of the validation text, equal for all methods with one seed at one step."""
        for number in range(self.validation["batches"]):
            yield self._blocks(VALID, self.size, step, number)

    def _blocks(self, stream: int, size: int, step: int, number: int) -> tuple[np.ndarray, np.ndarray]:
        key = (self.seed, stream, step, number)
        return draw_blocks(self.texts[stream], self.types, size, self.context, self.probability, key)


class LanguageTask(BlockTask):
    """Next-token prediction over consecutive blocks of one text, each used once per epoch in a random order."""

    def __init__(self, corpus, settings: dict, device: str):
        """corpus: from `data.prepared_corpus.load_manifest`. settings: a run's settings."""
        super().__init__(settings, device)
        self.special = tuple(corpus.special)
        self.type_counts = corpus.counts
        tokens = corpus.tokens("train", at_least=self.context + 1)
        self.blocks = Blocks(tokens, self.context, self.sequences, self.seed)
        self.steps_per_epoch = self.blocks.steps_per_epoch
        self.validation_tokens = corpus.tokens("valid", at_least=self.context + 1)

    def draw(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Blocks of step `step`, from its epoch."""
        return self.blocks.draw(step)

    def counts(self) -> np.ndarray:
        """Counts in the training text."""
        return self.type_counts

    def validation_batches(self, step: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The validation text from its start in consecutive blocks, the same at every step.

        As many whole blocks as fit into `validation.tokens`, at least one; all if it is not set.
        """
        length = len(self.validation_tokens) - 1
        if self.validation.get("tokens"):
            length = min(length, max(self.context, self.validation["tokens"]))
        blocks = length // self.context
        for first in range(0, blocks, self.size):
            start, end = first * self.context, min(first + self.size, blocks) * self.context
            ids = self.validation_tokens[start : end + 1].astype(np.int64)
            yield ids[:-1].reshape(-1, self.context), ids[1:].reshape(-1, self.context)
