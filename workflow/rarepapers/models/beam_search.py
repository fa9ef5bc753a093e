"""Beam search, batched over sentences, with cached keys and values.

Shapes: B sentences, k hypotheses of each (1 at first, then `beam`), S source positions, V types, c candidates.
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch

from rarepapers.core.special_types import END, PAD, START
from rarepapers.models.beam_candidates import best_continuations
from rarepapers.models.encoder_decoder import EncoderDecoder

# Hypotheses times source positions decoded together. On a CPU, matrix products reach full speed at a few hundred rows
# (measured: a row takes 1.5 times as long with 60 rows as with 300); a GPU needs thousands.
BATCH_TOKENS = {"cpu": 8192, "cuda": 65_536}
# Batches searched in parallel on a CPU, which is faster than several threads per product, many times so on a busy
# machine. More batches would wait for Python's interpreter lock.
WORKERS = 4
# Finished sentences are removed from the batch once they are this share of it.
SHARE_TAKEN_OUT = 1 / 8


def length_limit(source_length):
    """Maximum number of ids of a translation, including </s>: 1.2 times the source length (int or tensor) plus 10."""
    return source_length * 12 // 10 + 10


@dataclass
class Beam:
    """The unfinished sentences of a batch and their hypotheses.

    sentences: their indices in the batch, B. scores: log probabilities, B x k. written: ids so far, `start` first,
    B x k x t. limits: maximum number of ids, B. best: score of the best closed hypothesis, B. closed: number of closed
    ones, B.
    """

    sentences: torch.Tensor
    scores: torch.Tensor
    written: torch.Tensor
    limits: torch.Tensor
    best: torch.Tensor
    closed: torch.Tensor

    @classmethod
    def begin(cls, limits: torch.Tensor) -> "Beam":
        """One empty hypothesis per sentence."""
        batch, device = len(limits), limits.device
        return cls(
            sentences=torch.arange(batch, device=device),
            scores=torch.zeros(batch, 1, device=device),
            written=torch.full((batch, 1, 1), START, device=device),
            limits=limits,
            best=torch.full((batch,), -math.inf, device=device),
            closed=torch.zeros_like(limits),
        )

    @property
    def length(self) -> int:
        """Number of ids of a hypothesis, including the next one."""
        return self.written.shape[2]

    def is_open(self, beam: int) -> torch.Tensor:
        """Whether each sentence can continue: fewer than `beam` hypotheses are closed, and another id is allowed."""
        return (self.closed < beam) & (self.limits >= self.length)

    def keep(self, rows: torch.Tensor) -> None:
        """Keep only these rows."""
        for name, value in vars(self).items():
            setattr(self, name, value[rows])

    def close(self, values: torch.Tensor, parents: torch.Tensor, exponent: float) -> list[tuple[int, list[int], float]]:
        """Count the hypotheses that end here; returns sentence, ids and score of each new best one.

        values: log probabilities with </s>, -inf if the hypothesis does not end. parents: their hypotheses. Both B x c.
        """
        self.closed += values.isfinite().sum(1)
        value, place = values.max(1)
        score = value / self.length**exponent
        rows = (score > self.best).nonzero()[:, 0]
        self.best = torch.maximum(self.best, score)
        written = self.written[rows, parents[rows, place[rows]], 1:]
        return list(zip(self.sentences[rows].tolist(), written.tolist(), score[rows].tolist(), strict=True))

    def extend(self, values: torch.Tensor, parents: torch.Tensor, types: torch.Tensor) -> None:
        """Continue with these hypotheses: log probabilities, parent hypotheses and added types, each B x k."""
        self.scores = values
        past = self.written.gather(1, parents[:, :, None].expand(-1, -1, self.length))
        self.written = torch.cat([past, types[:, :, None]], dim=2)


@torch.inference_mode()
def beam_search(
    model: EncoderDecoder, source: torch.Tensor, beam: int, length_exponent: float = 1.0, max_length: int | None = None
) -> list[tuple[list[int], float]]:
    """The best translation of each sentence of `source` (B x S, padding at the end), and its score.

    The score is log p / length ** length_exponent; both include </s>. At each step the `beam` most probable
    continuations other than </s> go on. A </s> among the `beam` most probable of all closes a hypothesis, and a
    sentence is finished when `beam` hypotheses are closed (as in fairseq and CTranslate2). `beam` 1 is greedy search.
    max_length: maximum number of ids of a translation, including its </s>, which is forced at that length; None:
    `length_limit` of each source; never more than the model's context. <s> and <pad> are never generated. The
    returned ids exclude <s> and </s>.

    The model must be in evaluation mode. A sentence's result does not depend on the other sentences of its batch.
    """
    lengths = (source != PAD).sum(1)
    limits = length_limit(lengths) if max_length is None else torch.full_like(lengths, max_length)
    state = Beam.begin(limits.clamp_(max=model.config.context))
    results: list[tuple[list[int], float]] = [([], -math.inf)] * len(source)
    cache = model.cache(*model.encode(source), slots=1 + beam * int(limits.max()))
    soonest = int(limits.min())
    while True:
        log_probabilities = model.logits(model.step(state.written[:, :, -1], cache)).float().log_softmax(2)
        log_probabilities[:, :, [START, PAD]] = -math.inf
        if state.length >= soonest:
            forbid_all_but(END, log_probabilities, state.limits <= state.length)
        hypotheses = state.scores.shape[1]
        values, parents, types = best_continuations(log_probabilities, state.scores, 2 * beam)
        is_end = types == END
        closing = is_end & state.is_open(beam)[:, None]
        closing[:, beam:] = False
        for sentence, ids, score in state.close(values.masked_fill(~closing, -math.inf), parents, length_exponent):
            results[sentence] = ids, score
        # As many </s> as hypotheses can be among the candidates; the first step has fewer hypotheses.
        number = min(beam, types.shape[1] - hypotheses)
        going_on = is_end.byte().argsort(dim=1, stable=True)[:, :number]
        values, parents, types = (x.gather(1, going_on) for x in (values, parents, types))
        state.extend(values, parents, types)
        is_open = state.is_open(beam)
        searched = int(is_open.sum())
        if searched == 0:
            return results
        cache.reorder(parents)
        if searched <= (1 - SHARE_TAKEN_OUT) * len(is_open):
            rows = is_open.nonzero()[:, 0]
            state.keep(rows)
            cache.keep(rows)
            soonest = int(state.limits.min())


def forbid_all_but(allowed: int, log_probabilities: torch.Tensor, rows: torch.Tensor) -> None:
    """Set all but one type to -inf for the sentences `rows` (B, bool) of log probabilities, B x k x V."""
    kept = log_probabilities[rows, :, allowed]
    log_probabilities[rows] = -math.inf
    log_probabilities[rows, :, allowed] = kept


def translate(
    model: EncoderDecoder,
    sources: Sequence[np.ndarray],
    beam: int,
    length_exponent: float = 1.0,
    batch_tokens: int | None = None,
    max_length: int | None = None,
) -> list[list[int]]:
    """The best translation of each of `sources` (ids with </s>), in order, as ids without start and end.

    batch_tokens: source positions (with padding) times `beam` that are decoded together; None: the device's default. A
    source longer than the model's context is cut, but keeps its </s>. Other arguments as in `beam_search`. Raises
    ValueError for an empty source.
    """
    if any(len(source) == 0 for source in sources):
        raise ValueError("a source to translate has no id, not even </s>")
    batches = _batches(sources, beam, batch_tokens, model)
    was_training = model.training
    model.eval()
    try:
        found = _at_once(lambda batch: beam_search(model, batch[1], beam, length_exponent, max_length), batches)
    finally:
        model.train(was_training)
    translations: list[list[int]] = [[]] * len(sources)
    for (places, _), results in zip(batches, found, strict=True):
        for place, (ids, _) in zip(places, results, strict=True):
            translations[place] = ids
    return translations


def _batches(
    sources: Sequence[np.ndarray], beam: int, batch_tokens: int | None, model: EncoderDecoder
) -> list[tuple[list[int], torch.Tensor]]:
    """Indices of sources and their ids (B x S, on the model's device), longest first."""
    device, context = model.output_weight.device, model.config.context
    budget = BATCH_TOKENS["cpu" if device.type == "cpu" else "cuda"] if batch_tokens is None else batch_tokens
    order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
    batches = []
    while order:
        longest = min(len(sources[order[0]]), context)
        number = max(1, budget // (longest * beam))
        places, order = order[:number], order[number:]
        ids = torch.full((len(places), longest), PAD)
        for row, place in enumerate(places):
            source = sources[place]
            if len(source) > context:
                source = np.append(source[: context - 1], source[-1])
            ids[row, : len(source)] = torch.as_tensor(source.astype(np.int64))
        batches.append((places, ids.to(device)))
    return batches


def _at_once(search: Callable, batches: list) -> list:
    """`search` of each batch, with several batches in parallel on a CPU with several threads."""
    threads = torch.get_num_threads()
    workers = min(threads, WORKERS, len(batches))
    if workers < 2 or batches[0][1].device.type != "cpu":
        return [search(batch) for batch in batches]
    share = threads // workers
    torch.set_num_threads(share)
    try:
        # The number of threads is set per thread, but also for libraries shared by all.
        with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(share,)) as pool:
            return list(pool.map(search, batches))
    finally:
        torch.set_num_threads(threads)
