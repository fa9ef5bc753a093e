"""Training task of translation models: pairs in batches by tokens, with BLEU on the validation split."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
import torch

from rarepapers.core.errors import UserError
from rarepapers.core.special_types import PAD
from rarepapers.data.codec import codec_of
from rarepapers.data.pairs.pair_batches import PairBatches, collate, in_batches, lengths
from rarepapers.data.pairs.prepared_pairs import load_pairs
from rarepapers.metrics.translation_scores import Scoring
from rarepapers.models.beam_search import translate
from rarepapers.training.tasks import Batch, Inputs, Task

# Sentences translated between two checks for a stop signal.
SENTENCES_AT_ONCE = 200


class TranslationTask(Task):
    """Next-token prediction of target sentences (B x T), given the source (B x S) and the target so far.

    Every pair is used once per epoch, in batches of similar length whose order is drawn for each epoch. Pairs with a
    side of more than model.context tokens, including </s>, are left out.
    """

    padding = PAD

    def __init__(self, corpus, settings: dict, device: str):
        """corpus: from `data.prepared_corpus.load_manifest`, of kind translation. settings: a run's settings."""
        super().__init__(settings, device)
        self.corpus = corpus
        self.special = tuple(corpus.special)
        self.type_counts = corpus.counts
        self.train, self.valid = load_pairs(corpus, "train"), load_pairs(corpus, "valid")
        self.validated = pairs_within_context(self.valid, self.context)
        self.batch_tokens = settings["training"]["batch_tokens"]
        self.batches = PairBatches(*lengths(self.train), self.batch_tokens, self.context, self.seed, self.accumulation)
        self.tokens_per_step = self.batches.tokens_per_step
        self.steps_per_epoch = self.batches.steps_per_epoch

    @cached_property
    def codec(self):
        """The codec that turns ids into plain text."""
        return codec_of(self.corpus)

    def micro_batches(self, step: int) -> list[Batch]:
        """(source, decoder inputs) and targets of step `step`, one entry per micro-batch."""
        return [self._batch(self.train, chosen) for chosen in self.batches.draw(step)]

    def targets(self, step: int) -> torch.Tensor:
        """All targets of step `step`, flat, without padding."""
        offsets = self.train.target_offsets
        lines = [self.train.target[offsets[i] : offsets[i + 1]] for i in np.concatenate(self.batches.draw(step))]
        return torch.from_numpy(np.concatenate(lines).astype(np.int64))

    def target_tokens(self, step: int) -> int:
        """Number of targets of step `step`, without padding."""
        return self.batches.target_tokens(step)

    def counts(self) -> np.ndarray:
        """Counts in the target side of the training text."""
        return self.type_counts

    def source_counts(self) -> np.ndarray:
        """Counts in the source side of the training text."""
        return self.corpus.source_counts

    def derived(self) -> dict:
        """Number of pairs left out, sizes of steps and epochs, and signatures of the validation scores."""
        # sacrebleu has no signature before it has seen references.
        seen = scored(["a"], ["a"], self.corpus.scoring) if "bleu" in self.validation else {}
        return {
            "dropped_pairs": self.batches.dropped,
            "dropped_validation_pairs": len(self.valid) - len(self.validated),
            "tokens_per_step": self.tokens_per_step,
            "steps_per_epoch": self.steps_per_epoch,
            "validation_signatures": {split: signature for split, (_, signature) in seen.items()},
        }

    def validation_batches(self, step: int) -> Iterator[tuple]:
        """All pairs of the validation split, sorted by length, except those too long for the model."""
        return self._in_batches(self.validated)

    def sample(self, positions: int) -> Iterator[tuple[Inputs, torch.Tensor]]:
        """Evenly spaced pairs of the validation split with about this many targets."""
        _, target = lengths(self.valid)
        number = min(len(self.validated), max(1, round(positions / target[self.validated].mean())))
        for inputs, targets in self._in_batches(evenly_spaced(self.validated, number)):
            yield self.put(inputs), self.put(targets)

    def validate(self, model: torch.nn.Module, step: int, must_stop: Callable[[], object]) -> dict[str, float] | None:
        """The loss, and BLEU and chrF with training.validation.bleu; None as for `Task.validate`."""
        result, decoding = super().validate(model, step, must_stop), self.validation.get("bleu")
        if result is None or decoding is None:
            return result
        number = decoding.get("sentences") or len(self.valid)
        chosen = evenly_spaced(np.arange(len(self.valid)), min(number, len(self.valid)))
        hypotheses = self._translated(model, chosen, decoding, must_stop)
        if hypotheses is None:
            return None
        references = self.valid.texts("target")
        found = scored(hypotheses, [references[i] for i in chosen], self.corpus.scoring)
        return result | {split: score for split, (score, _) in found.items()}

    def _translated(self, model, chosen: np.ndarray, decoding: dict, must_stop) -> list[str] | None:
        """Translations of the validation sources `chosen`, as plain text; None if it must stop."""
        offsets = self.valid.source_offsets
        sources = [self.valid.source[offsets[i] : offsets[i + 1]] for i in chosen]
        order = np.argsort([len(ids) for ids in sources], kind="stable")
        texts = {}
        for part in np.array_split(order, -(-len(order) // SENTENCES_AT_ONCE)):
            if must_stop():
                return None
            part_sources = [sources[i] for i in part]
            found = translate(model, part_sources, decoding["beam"], decoding["length_exponent"])
            texts |= {int(i): self.codec.detokenised(ids) for i, ids in zip(part, found, strict=True)}
        return [texts[i] for i in range(len(sources))]

    def _in_batches(self, chosen: np.ndarray) -> Iterator[tuple]:
        """Inputs and targets of validation pairs, arrays, in batches by length."""
        for batch in in_batches(self.valid, chosen, self.batch_tokens):
            source, inputs, targets = collate(self.valid, batch)
            yield (source, inputs), targets

    def _batch(self, pairs, chosen: np.ndarray) -> Batch:
        source, inputs, targets = collate(pairs, chosen)
        return (self.put(source), self.put(inputs)), torch.from_numpy(targets)


def pairs_within_context(pairs, context: int) -> np.ndarray:
    """Indices of the validation pairs with at most `context` tokens per side; raises UserError if there are none."""
    kept = np.flatnonzero(np.maximum(*lengths(pairs)) <= context)
    if not len(kept):
        raise UserError(
            f"no pair of the validation split is at most model.context {context:,} tokens long; take a larger one"
        )
    return kept


def evenly_spaced(items: np.ndarray, number: int) -> np.ndarray:
    """`number` of the items, evenly spaced over all of them."""
    return items[np.arange(number) * len(items) // number]


def scored(hypotheses: Sequence[str], references: Sequence[str], scoring: Scoring) -> dict[str, tuple[float, str]]:
    """BLEU and chrF (0 to 100) of detokenised lines and their signatures, by split of the history."""
    scores = {}
    for split, metric in (("valid_bleu", scoring.bleu()), ("valid_chrf", scoring.chrf())):
        score = metric.corpus_score(list(hypotheses), [list(references)]).score
        scores[split] = score, str(metric.get_signature())
    return scores
