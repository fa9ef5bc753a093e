"""What is trained on: batches and validation for each kind of corpus.

A task knows its `vocabulary`, `tokens_per_step` and `steps_per_epoch`, and gives the micro-batches of a step, all its
targets, the scores on the validation text, and what gates need to know. The batches of a step are a pure function of
(seed, step), so the targets of one long past need not be kept.
"""

import functools
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch.nn import functional as F

from raretok.data.text.block_batches import TRAIN, VALID, Blocks, draw_blocks
from raretok.methods import TrainingFacts
from raretok.training import distributed

# Logits of a validation batch held at once: 2^24 of them, 64 MiB.
LOGITS_AT_ONCE = 2**24
# The target that `torch.nn.functional.cross_entropy` leaves out when it is told none.
NO_TARGET = -100

# What a model is called with: ids B x T, or several such arrays, of which the targets' sequences are the last.
Inputs = torch.Tensor | tuple[torch.Tensor, ...]
# Inputs and targets, B x T each.
Batch = tuple[Inputs, torch.Tensor]


class Task:
    """What the kinds of corpus share."""

    vocabulary: int
    # Mean number of targets of an update, padding left out.
    tokens_per_step: int | float
    steps_per_epoch: int
    # Ids that are never rare.
    special: tuple[int, ...] = ()
    # The target that is no token, where there is one.
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
        # Of runs trained together, several ask for the same step.
        self.earlier_targets = functools.lru_cache(maxsize=4)(lambda step: distributed.share(self.targets(step)))

    def micro_batches(self, step: int) -> list[Batch]:
        """Inputs and targets of update `step`, as many pairs as are accumulated."""
        raise NotImplementedError

    def targets(self, step: int) -> torch.Tensor:
        """All targets of update `step`, flat, padding left out."""
        raise NotImplementedError

    def target_tokens(self, step: int) -> int:
        """Number of the targets of update `step`, padding left out."""
        return self.tokens_per_step

    def counts(self) -> np.ndarray:
        """How often each type is a target in an epoch of training, V, whole numbers."""
        raise NotImplementedError

    def source_counts(self) -> np.ndarray | None:
        """How often each type stands in the source side of the training text, V; None where there is none."""
        return None

    def validation_batches(self, step: int) -> Iterator[tuple]:
        """Inputs and targets to validate on after `step` updates, arrays."""
        raise NotImplementedError

    def facts(self) -> TrainingFacts:
        """What gates know of the training."""
        return TrainingFacts(
            counts=self.counts(),
            special=self.special,
            tokens_per_step=self.tokens_per_step,
            steps_per_epoch=self.steps_per_epoch,
            rare=self.rare,
            device=self.device,
            padding=self.padding,
            source_counts=self.source_counts(),
            earlier_targets=self.earlier_targets,
        )

    def derived(self) -> dict:
        """Numbers in use that the settings do not show."""
        return {}

    def validate(self, model: torch.nn.Module, step: int, must_stop: Callable[[], object]) -> dict[str, float] | None:
        """Scores on the validation text by the name of their split in the history; `valid` is the loss.

        None when must_stop() became true before they were ready.
        """
        loss = self.validation_loss(model, step, must_stop)
        return None if loss is None else {"valid": loss}

    def validation_loss(self, model: torch.nn.Module, step: int, must_stop: Callable[[], object]) -> float | None:
        """Mean plain cross-entropy over the validation batches, the same for every method.

        None when must_stop() became true between two batches. Processes share out each batch's rows.
        """
        model.eval()
        sums = torch.zeros(2, dtype=torch.float64, device=self.device)
        for block in self.validation_batches(step):
            if must_stop():
                model.train()
                return None
            inputs, targets = (self.put(distributed.share(part)) for part in block)
            if len(targets):
                sums[0] += negative_log_likelihood(model, inputs, targets, self.padding)
                sums[1] += targets.numel() if self.padding is None else (targets != self.padding).sum()
        model.train()
        total, positions = distributed.total(sums).tolist()
        return total / positions

    def sample(self, positions: int) -> Iterator[Batch]:
        """A fixed part of the validation text of about so many targets, the same at any time."""
        seen = 0
        for block in self.validation_batches(0):
            if seen >= positions:
                return
            inputs, targets = (self.put(part) for part in block)
            yield inputs, targets
            seen += targets.numel()

    def put(self, block) -> Inputs:
        """An array, or several, where the training runs."""
        if isinstance(block, tuple):
            return tuple(self.put(part) for part in block)
        tensor = torch.from_numpy(block)
        if self.device != "cpu":
            # From pinned memory a copy waits for nothing that the GPU still has to do.
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor


def hidden_of(model: Callable, inputs: Inputs) -> torch.Tensor:
    """Hidden vectors, B x T x d, of a batch's inputs."""
    return model(*inputs) if isinstance(inputs, tuple) else model(inputs)


@torch.no_grad()
def negative_log_likelihood(
    model: torch.nn.Module, inputs: Inputs, targets: torch.Tensor, padding: int | None = None
) -> torch.Tensor:
    """Sum over all positions of -log softmax(z)[y] on plain logits, a 64-bit scalar; targets B x T.

    Logits are made for some positions at a time and in 32 bits, whatever the model computes in. padding: positions
    with this target do not count.
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
    """Blocks of one text: an update is `accumulation` micro-batches of `size` sequences of `context` tokens."""

    def __init__(self, settings: dict, device: str):
        """settings: a run's settings."""
        super().__init__(settings, device)
        self.size = settings["training"]["batch_size"]
        self.sequences = self.size * self.accumulation
        self.tokens_per_step = self.sequences * self.context

    def draw(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets of update `step`, sequences x context each."""
        raise NotImplementedError

    def micro_batches(self, step: int) -> list[Batch]:
        """Inputs and targets of update `step`, as many pairs as are accumulated, batch_size x context each."""
        inputs, targets = (self.put(block) for block in self.draw(step))
        return list(zip(inputs.split(self.size), targets.split(self.size), strict=True))

    def targets(self, step: int) -> torch.Tensor:
        """All targets of update `step`, flat."""
        return self.put(self.draw(step)[1]).flatten()


class CharacterTask(BlockTask):
    """Next-character prediction in two languages, high-resource and low-resource, over one text.

    The low-resource language is the same text with `types` added to every id, so there are 2 x types tokens.
    """

    def __init__(self, corpus, settings: dict, device: str):
        """corpus: from `data.corpora.load_manifest`. settings: a run's settings."""
        super().__init__(settings, device)
        self.types = corpus.types
        self.type_counts = corpus.counts
        self.vocabulary = 2 * corpus.types
        # One block and the character after it.
        self.texts = {
            TRAIN: corpus.tokens("train", at_least=self.context + 1),
            VALID: corpus.tokens("valid", at_least=self.context + 1),
        }
        self.probability = settings["corpus"]["low_resource_probability"]
        self.steps_per_epoch = max(1, len(self.texts[TRAIN]) // self.tokens_per_step)

    def draw(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Random blocks of the training text, each in one of the languages."""
        return self._blocks(TRAIN, self.sequences, step, 0)

    def counts(self) -> np.ndarray:
        """Counts in the training text, shared out between the languages."""
        share = self.probability
        return np.concatenate([self.type_counts * (1 - share), self.type_counts * share]).round().astype(np.int64)

    def validation_batches(self, step: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Random mixed-language batches of the validation text.

        The same for every method of one seed at one step (stop_jostling, inventory 4.7).
        """
        for number in range(self.validation["batches"]):
            yield self._blocks(VALID, self.size, step, number)

    def _blocks(self, stream: int, size: int, step: int, number: int) -> tuple[np.ndarray, np.ndarray]:
        key = (self.seed, stream, step, number)
        return draw_blocks(self.texts[stream], self.types, size, self.context, self.probability, key)


class LanguageTask(BlockTask):
    """Next-token prediction over consecutive blocks of one text, each seen once an epoch in an order of its own."""

    def __init__(self, corpus, settings: dict, device: str):
        """corpus: from `data.corpora.load_manifest`. settings: a run's settings."""
        super().__init__(settings, device)
        self.vocabulary = corpus.types
        self.special = tuple(corpus.special)
        self.type_counts = corpus.counts
        tokens = corpus.tokens("train", at_least=self.context + 1)
        self.blocks = Blocks(tokens, self.context, self.sequences, self.seed)
        self.steps_per_epoch = self.blocks.steps_per_epoch
        self.validation_tokens = corpus.tokens("valid", at_least=self.context + 1)

    def draw(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Blocks of the epoch in which update `step` lies."""
        return self.blocks.draw(step)

    def counts(self) -> np.ndarray:
        """Counts in the training text."""
        return self.type_counts

    def validation_batches(self, step: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The validation text from its start in consecutive blocks, at every step the same.

        As many whole blocks as validation.tokens has, at least one; all there are without it.
        """
        length = len(self.validation_tokens) - 1
        if self.validation.get("tokens"):
            length = min(length, max(self.context, self.validation["tokens"]))
        blocks = length // self.context
        for first in range(0, blocks, self.size):
            start, end = first * self.context, min(first + self.size, blocks) * self.context
            ids = self.validation_tokens[start : end + 1].astype(np.int64)
            yield ids[:-1].reshape(-1, self.context), ids[1:].reshape(-1, self.context)
