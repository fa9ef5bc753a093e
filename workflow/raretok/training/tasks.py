"""What is trained on: batches and validation for each kind of corpus."""

from collections.abc import Callable

import torch
from torch.nn import functional as F

from raretok.data.batches import TRAIN, VALID, draw_blocks


class CharacterTask:
    """Next-character prediction in two languages, high-resource and low-resource, over one text.

    The low-resource language is the same text with `types` added to every id, so there are 2 x types tokens.
    """

    def __init__(self, corpus, settings: dict, device: str):
        """corpus: from `data.corpora.load_manifest`. settings: a run's settings."""
        self.types = corpus.types
        self.vocabulary = 2 * corpus.types
        self.context = settings["model"]["context"]
        # One block and the character after it.
        self.texts = {
            TRAIN: corpus.tokens("train", at_least=self.context + 1),
            VALID: corpus.tokens("valid", at_least=self.context + 1),
        }
        self.size = settings["training"]["batch_size"]
        self.probability = settings["corpus"]["low_resource_probability"]
        self.validation_batches = settings["training"]["validation"]["batches"]
        self.seed = settings["seed"]
        self.device = device
        self.tokens_per_step = self.size * self.context

    def batch(self, step: int, stream: int = TRAIN, number: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets of update `step`, batch_size x context each."""
        blocks = draw_blocks(
            self.texts[stream],
            self.types,
            self.size,
            self.context,
            self.probability,
            key=(self.seed, stream, step, number),
        )
        return tuple(torch.from_numpy(block).to(self.device, non_blocking=True) for block in blocks)

    @torch.no_grad()
    def validation_loss(self, model: torch.nn.Module, step: int, must_stop: Callable[[], object]) -> float | None:
        """Mean plain cross-entropy over random mixed-language batches of the validation text.

        The same batches for every method of one seed at one step (stop_jostling, inventory 4.7). None when
        must_stop() became true between two batches.
        """
        model.eval()
        losses = []
        for number in range(self.validation_batches):
            if must_stop():
                break
            inputs, targets = self.batch(step, VALID, number)
            losses.append(F.cross_entropy(model.logits(model(inputs)).flatten(0, 1), targets.flatten()))
        model.train()
        return torch.stack(losses).mean().item() if len(losses) == self.validation_batches else None


TASKS = {"characters": CharacterTask}
