"""Evaluation of one checkpoint of a character model on two languages (stop_jostling, section 4).

The high-resource language HR has ids 0 to n - 1; the low-resource language LR is the same text with n added.
Both are scored over all V = 2n types. float32 forward, float64 statistics.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from rarepapers.core.errors import UserError
from rarepapers.evaluation.metric_rows import Found, row
from rarepapers.metrics import clusters, neighbours, projection
from rarepapers.metrics.zipfian_symmetry import zipfian_symmetry
from raretok.metrics import isotropy, ranking
from raretok.metrics.perplexity import (
    GRID,
    TEMPERATURES,
    best_temperature,
    from_mean,
    negative_log_likelihood,
    perplexity,
    sweep,
)
from raretok.metrics.tail_mass import tail_mass

# Positions scored at a time: for V = 130 their logits take 1 MB, which stays in the cache.
ROWS = 2048


@dataclass(frozen=True)
class Scores:
    """Scores of N positions: nll (nats), ranks, target_probability, tail_mass and predicted (the arg max), (N,) each.

    sweep: loss at each of 200 temperatures, summed over positions, (200,). examples: predicted distributions at P
    positions, (P, V), and example_targets, their targets, (P,).
    """

    nll: np.ndarray
    ranks: np.ndarray
    target_probability: np.ndarray
    tail_mass: np.ndarray
    sweep: np.ndarray
    examples: np.ndarray
    example_targets: np.ndarray
    predicted: np.ndarray


def scored_positions(length: int, context: int, settings: Mapping) -> int:
    """Number of predicted characters in a text of `length`, such as 111,360 of 111,540 (context 64, batches of 12).

    Raises UserError if it is 0.
    """
    if settings["drop_incomplete"]:
        batch = settings["batch_size"] * context
        count = (length - 1) // batch * batch
        needed = batch + 1
    else:
        count, needed = length - 1, 2
    if count < 1:
        raise UserError(f"the validation text has {length} characters, but one evaluation batch needs {needed}")
    return count


def score(model: torch.nn.Module, ids: np.ndarray, context: int, settings: Mapping, device="cpu") -> Scores:
    """Score the text `ids` (integers) in consecutive independent blocks of `context`.

    The batch size only decides how many blocks are dropped; blocks are computed together up to ROWS positions.
    """
    count = scored_positions(len(ids), context, settings)
    # int64 even if the file holds bytes, which low-resource ids would overflow.
    ids = torch.from_numpy(np.asarray(ids[: count + 1], dtype=np.int64)).to(device)
    inputs, targets = ids[:-1], ids[1:]
    wanted = np.unique(np.linspace(0, count - 1, min(settings["examples"], count)).round().astype(np.int64))
    kept, sums, likeliest = [], np.zeros(GRID), []
    examples = []
    with torch.inference_mode():
        for start, stop, width in _chunks(count, context):
            logits = model.logits(model(inputs[start:stop].view(-1, width))).flatten(0, 1).float()
            goal = targets[start:stop]
            nll = negative_log_likelihood(logits, goal)
            columns = (nll, ranking.target_ranks(logits, goal), torch.exp(-nll), tail_mass(logits))
            kept.append([column.cpu().numpy() for column in columns])
            likeliest.append(logits.argmax(1).cpu().numpy())
            sums += sweep(logits, goal)
            here = wanted[(wanted >= start) & (wanted < stop)] - start
            examples.append(logits[torch.from_numpy(here).to(device)].double().softmax(1).float().cpu().numpy())
    columns = [np.concatenate(column) for column in zip(*kept, strict=True)]
    kept_examples = np.concatenate(examples), targets.cpu().numpy()[wanted]
    return Scores(*columns, sums, *kept_examples, np.concatenate(likeliest))


def score_languages(
    model: torch.nn.Module,
    text: np.ndarray,
    types: int,
    context: int,
    settings: Mapping,
    device: str = "cpu",
) -> dict[str, Scores]:
    """Scores of a text (HR ids, int64) in both languages with `types` characters each."""
    return {group: score(model, text + k * types, context, settings, device) for k, group in enumerate(("HR", "LR"))}


def _chunks(count: int, context: int):
    """(start, stop, block length) of consecutive chunks of whole blocks; a shorter last block is a chunk of its own."""
    step = max(1, ROWS // context) * context
    whole = count // context * context
    for start in range(0, whole, step):
        yield start, min(start + step, whole), context
    if whole < count:
        yield whole, count, count - whole


def text_metrics(scores: Scores, group: str, checkpoint: str, fields: dict) -> tuple[list[dict], np.ndarray]:
    """Metric rows of one language, and its perplexity at each of `TEMPERATURES`.

    fields: signature fields of the blocks.
    """
    n = len(scores.nll)
    curve = from_mean(scores.sweep / n)
    # The plain perplexity is more exact than the sweep; with it, rounding cannot lift the best perplexity above it.
    curve[TEMPERATURES == 1.0] = perplexity(scores.nll)
    best, temperature = best_temperature(curve)
    ties, grid = {"ties": "lower_id"}, {"temperatures": "0.01-2.00"}
    values = {
        "perplexity": (perplexity(scores.nll), {}),
        "best_perplexity": (best, grid),
        "best_temperature": (temperature, grid),
        "accuracy": (ranking.accuracy(scores.ranks), ties),
        "recall@5": (ranking.recall(scores.ranks, 5), ties),
        "mrr": (ranking.mean_reciprocal_rank(scores.ranks), ties),
        "mean_rank": (ranking.mean_rank(scores.ranks), ties),
        "target_probability": (scores.target_probability.mean(), {}),
        "tail_mass": (scores.tail_mass.mean(), {"outside": 5}),
    }
    rows = [
        row(name, group, f"valid@{checkpoint}", value, n, **fields, **extra, checkpoint=checkpoint)
        for name, (value, extra) in values.items()
    ]
    return rows, curve


def block_fields(context: int, settings: Mapping) -> dict:
    """Signature fields of the blocks in which a text is scored."""
    incomplete = "drop" if settings["drop_incomplete"] else "keep"
    return {"groups": "language", "context": context, "batch": settings["batch_size"], "incomplete": incomplete}


def weight_metrics(
    output: np.ndarray,
    untied_input: np.ndarray | None,
    symbols: list[str],
    counts: np.ndarray,
    settings: Mapping,
    checkpoint: str,
) -> tuple[list[dict], dict[str, np.ndarray]]:
    """Metric rows and arrays of the output embeddings (2n x d), and rows of untied input embeddings.

    counts: of the n characters in the training text.
    """
    n, split, rows = len(symbols), f"weights@{checkpoint}", []

    def add(name, group, value, count, **fields):
        rows.append(row(name, group, split, value, count, **fields, checkpoint=checkpoint))

    for group, part in (("HR", slice(0, n)), ("LR", slice(n, 2 * n))):
        for name, value in isotropy.isotropy_readings(output[part]).items():
            vectors = isotropy.EIGENVECTORS[name]
            add(name, group, value, n, groups="language", matrix="output", eigenvectors=vectors)
        for name, value in zipfian_symmetry(output[part], counts).items():
            add(name, group, value, n, groups="language", matrix="output")
        if untied_input is not None:
            name, vectors = f"input_{isotropy.SIGN_FREE}", isotropy.EIGENVECTORS[isotropy.SIGN_FREE]
            value = isotropy.isotropy(untied_input[part])
            add(name, group, value, n, groups="language", matrix="input", eigenvectors=vectors)
    for group, (value, pairs) in clusters.mask_cosines(output, symbols).items():
        add("mask_cosine", group, value, pairs, matrix="output", pairs="without_self", mask="both_languages")
    ids, cosines = neighbours.nearest_to(output, np.arange(len(output)), settings["neighbours"])
    k = f"top{ids.shape[1]}"
    hits, slots = neighbours.related_share(ids, symbols, "Aa")
    add("related_neighbours", "Aa", hits, slots, unit="count", neighbours=k)
    hits, slots = neighbours.related_share(ids, symbols)
    share = hits / slots if slots else float("nan")
    add("related_neighbours", "letters", share, slots, unit="share", neighbours=k)
    plane = projection.plane(output, centred=True)
    made = {"matrix": "output", "components": 2}
    add("pca_distance", "", projection.translation_distance(plane), n, **made)
    relative = projection.relative_translation_distance(plane)
    add("pca_distance_relative", "", relative, n, **made, over="mean_of_all_pairs_across")
    arrays = {"embeddings": output, "neighbours": ids.astype(np.int32), "neighbour_cosines": cosines, "pca": plane}
    return rows, {f"{checkpoint}.{name}": array for name, array in arrays.items()}


def evaluate_checkpoint(
    model: torch.nn.Module,
    ids: np.ndarray,
    symbols: list[str],
    counts: np.ndarray,
    context: int,
    settings: Mapping,
    checkpoint: str,
    scored: Mapping[str, Scores],
) -> Found:
    """All metrics and arrays of one checkpoint (`best` or `last`), as listed in docs/results.md.

    ids: the validation text in HR ids. symbols: the n characters; the model's vocabulary is 2n. counts: of each in the
    training text. scored: of that text (`score_languages`).
    """
    fields, found = block_fields(context, settings), Found()
    for group, scores in scored.items():
        group_rows, curve = text_metrics(scores, group, checkpoint, fields)
        found.add((group_rows, {f"{checkpoint}.perplexity.{group}": curve}))
        if checkpoint == "best" and group == "HR":
            found.arrays["best.examples.HR"] = scores.examples
            found.arrays["best.example_targets.HR"] = scores.example_targets
    output, inputs = (weight.detach().cpu().numpy() for weight in (model.output_weight, model.input_weight))
    tied = model.output_weight is model.input_weight
    untied = None if tied else inputs
    found.add(weight_metrics(output, untied, symbols, counts, settings, checkpoint))
    return found
