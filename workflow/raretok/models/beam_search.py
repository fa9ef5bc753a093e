"""Beam search, batched over sentences, with keys and values kept from step to step.

Shapes: B sentences, k hypotheses of each (1 at first, then `beam`), S source positions, V types, c candidates.
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch

from raretok.models.beam_candidates import best_continuations
from raretok.models.encoder_decoder import EncoderDecoder

START, PADDING, END = 0, 1, 2
# Hypotheses decoded together, times source positions. On a CPU, matrix products of a few hundred rows are as fast as
# they get (measured: of 60 rows, each takes half as long again as of 300); a GPU wants thousands.
BATCH_TOKENS = {"cpu": 8192, "cuda": 65_536}
# Batches searched at once on a CPU: threads share the work better so than inside each product, many times better on a
# busy machine. More would wait for Python.
WORKERS = 4
# A sentence that is done is taken out of the batch once so large a share of it is.
SHARE_TAKEN_OUT = 1 / 8


def length_limit(source_length):
    """Most ids of a translation, </s> among them, of a source of so many (an int or a tensor): 1.2 times it, and 10."""
    return source_length * 12 // 10 + 10


@dataclass
class Beam:
    """The sentences of a batch that are still searched, and what their hypotheses are so far.

    sentences: their places in the batch, B. scores: log probabilities, B x k. written: ids so far, `start` first,
    B x k x t. limits: most ids, B. best: score of the best closed hypothesis, B. closed: number of closed ones, B.
    """

    sentences: torch.Tensor
    scores: torch.Tensor
    written: torch.Tensor
    limits: torch.Tensor
    best: torch.Tensor
    closed: torch.Tensor

    @classmethod
    def begin(cls, limits: torch.Tensor, start: int) -> "Beam":
        """One empty hypothesis for each sentence."""
        batch, device = len(limits), limits.device
        return cls(
            sentences=torch.arange(batch, device=device),
            scores=torch.zeros(batch, 1, device=device),
            written=torch.full((batch, 1, 1), start, device=device),
            limits=limits,
            best=torch.full((batch,), -math.inf, device=device),
            closed=torch.zeros_like(limits),
        )

    @property
    def length(self) -> int:
        """Ids that a hypothesis has with the next one."""
        return self.written.shape[2]

    def is_open(self, beam: int) -> torch.Tensor:
        """Which sentences can go on: fewer than `beam` hypotheses are closed, and the next id is allowed."""
        return (self.closed < beam) & (self.limits >= self.length)

    def keep(self, rows: torch.Tensor) -> None:
        """Go on with these rows alone."""
        for name, value in vars(self).items():
            setattr(self, name, value[rows])

    def close(self, values: torch.Tensor, parents: torch.Tensor, exponent: float) -> list[tuple[int, list[int], float]]:
        """Count hypotheses that end here; where one is the best so far, its sentence, ids and score.

        values: log probabilities with </s>, -inf where none ends, B x c. parents: the hypotheses that end, B x c.
        """
        self.closed += values.isfinite().sum(1)
        value, place = values.max(1)
        score = value / self.length**exponent
        rows = (score > self.best).nonzero()[:, 0]
        self.best = torch.maximum(self.best, score)
        written = self.written[rows, parents[rows, place[rows]], 1:]
        return list(zip(self.sentences[rows].tolist(), written.tolist(), score[rows].tolist(), strict=True))

    def extend(self, values: torch.Tensor, parents: torch.Tensor, types: torch.Tensor) -> None:
        """Go on with these hypotheses: log probabilities, hypotheses continued and types added, each B x k."""
        self.scores = values
        past = self.written.gather(1, parents[:, :, None].expand(-1, -1, self.length))
        self.written = torch.cat([past, types[:, :, None]], dim=2)


@torch.inference_mode()
def beam_search(
    model: EncoderDecoder,
    source: torch.Tensor,
    beam: int,
    length_exponent: float = 1.0,
    max_length: int | None = None,
    start: int = START,
    pad: int = PADDING,
    end: int = END,
) -> list[tuple[list[int], float]]:
    """The best translation of each sentence of `source` (B x S, padding at the end), and its score.

    The score is log p / length ** length_exponent; </s> counts in both. At each step the `beam` likeliest
    continuations that are no </s> go on; a </s> among the `beam` likeliest of all closes a hypothesis, and a sentence
    is done when `beam` are closed (as in fairseq and CTranslate2). `beam` 1 is greedy search. max_length: most ids
    of a translation with its </s>, which then comes whatever its probability; None: `length_limit` of each source;
    never more than the model's context. `start` and `pad` are never written. Ids come without `start` and `end`.

    The model must be in evaluation mode. A sentence's result does not depend on the others of its batch.
    """
    lengths = (source != pad).sum(1)
    limits = length_limit(lengths) if max_length is None else torch.full_like(lengths, max_length)
    state = Beam.begin(limits.clamp_(max=model.config.context), start)
    results: list[tuple[list[int], float]] = [([], -math.inf)] * len(source)
    cache = model.cache(*model.encode(source), slots=1 + beam * int(limits.max()))
    soonest = int(limits.min())
    while True:
        log_probabilities = model.logits(model.step(state.written[:, :, -1], cache)).float().log_softmax(2)
        log_probabilities[:, :, [start, pad]] = -math.inf
        if state.length >= soonest:
            forbid_all_but(end, log_probabilities, state.limits <= state.length)
        hypotheses = state.scores.shape[1]
        values, parents, types = best_continuations(log_probabilities, state.scores, 2 * beam)
        is_end = types == end
        closing = is_end & state.is_open(beam)[:, None]
        closing[:, beam:] = False
        for sentence, ids, score in state.close(values.masked_fill(~closing, -math.inf), parents, length_exponent):
            results[sentence] = ids, score
        # As many </s> as hypotheses can be among the candidates, which are fewer than usual at the first step.
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
    """Leave the sentences `rows` (B, bool) of B x k x V one type."""
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
    """The best translation of each of `sources` (ids with </s>), in their order: ids without special ends.

    batch_tokens: source positions times `beam`, padding too, decoded at once; None: what suits the device. A source
    longer than the model's context loses its end, not its </s>. Other arguments as in `beam_search`.
    Raises ValueError for an empty source.
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
    """Places of sources and their ids (B x S, on the model's device), longest first."""
    device, context = model.output_weight.device, model.config.context
    budget = BATCH_TOKENS["cpu" if device.type == "cpu" else "cuda"] if batch_tokens is None else batch_tokens
    order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
    batches = []
    while order:
        longest = min(len(sources[order[0]]), context)
        number = max(1, budget // (longest * beam))
        places, order = order[:number], order[number:]
        ids = torch.full((len(places), longest), PADDING)
        for row, place in enumerate(places):
            source = sources[place]
            if len(source) > context:
                source = np.append(source[: context - 1], source[-1])
            ids[row, : len(source)] = torch.as_tensor(source.astype(np.int64))
        batches.append((places, ids.to(device)))
    return batches


def _at_once(search: Callable, batches: list) -> list:
    """`search` of each batch; on a CPU with several threads, of several batches at once."""
    threads = torch.get_num_threads()
    workers = min(threads, WORKERS, len(batches))
    if workers < 2 or batches[0][1].device.type != "cpu":
        return [search(batch) for batch in batches]
    share = threads // workers
    torch.set_num_threads(share)
    try:
        # The number holds for the thread that sets it, and for libraries shared by all.
        with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(share,)) as pool:
            return list(pool.map(search, batches))
    finally:
        torch.set_num_threads(threads)
