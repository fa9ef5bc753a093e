"""Metrics and arrays of a language model (agg sections 3, 5, 6 and appendices; agps sections 2 and 4.2).

Each function returns metric rows as listed in docs/results.md; some also return arrays.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from rarepapers.core.special_types import END, UNKNOWN
from rarepapers.data.codec import Codec
from rarepapers.data.tokenizers import tokenizer_class
from rarepapers.evaluation import generation
from rarepapers.evaluation.metric_rows import row
from rarepapers.evaluation.temperature import FITTED, fit, temperature_rows
from rarepapers.evaluation.text_scores import LOGITS, Scores, hidden_vectors, limits_of, score, score_positions
from rarepapers.metrics.kept_gradient import gradient_energies, inverse_gram
from rarepapers.metrics.neighbours import nearest_to
from rarepapers.metrics.projection import plane, relative_singular_values
from rarepapers.metrics.rare_neighbours import rare_share
from rarepapers.metrics.separability import separability
from rarepapers.metrics.word_similarity import word_similarity
from rarepapers.metrics.zipfian_symmetry import zipfian_symmetry
from raretok.frequency_groups import masses
from raretok.metrics.group_statistics import Groups, distinct, group_perplexities, nonrare_perplexity
from raretok.metrics.isotropy import EIGENVECTORS, isotropy_readings
from raretok.metrics.mean_similarity import mean_cosine, mean_cosine_between, mean_inner_product

# Label of the first two groups of the first set taken together (deviations, agg A23).
NONRARE = "nonrare"
# Number of validation tokens used to fit a temperature.
FIT_TOKENS = 32768
# Constants, in nats, that are added to the logits of the third group of types after training.
OFFSETS = np.arange(0, 3.01, 0.25)


def data_rows(corpus, groups: list[Groups]) -> list[dict]:
    """Rows that depend on the data alone: numbers of types, masses, and the Human row of Uniq."""
    rows = []
    test = np.asarray(corpus.tokens("test"), dtype=np.int64)
    counts = {
        "train": np.asarray(corpus.counts),
        "valid": np.bincount(np.asarray(corpus.tokens("valid"), dtype=np.int64), minlength=corpus.types),
        "test": np.bincount(test, minlength=corpus.types),
    }
    for one in groups:
        for split, count in counts.items():
            shares = masses(one.bounds, count)
            for label, share in zip(one.labels, shares, strict=True):
                rows.append(_row("group_mass", label, f"{split}@data", share, count.sum(), one))
        for label, part in zip(one.labels, one.parts, strict=True):
            types = part.stop - part.start
            rows.append(_row("group_types", label, "train@data", types, corpus.types, one))
        human = distinct(test, one)
        rows += _four("uniq_human", one, "test@data", human, [len(test)] * 4)
    return rows


def text_rows(
    model: torch.nn.Module,
    corpus,
    groups: list[Groups],
    settings: Mapping,
    checkpoint: str,
    device: str,
    known: Scores | None = None,
    temperature: float = 1.0,
) -> tuple[list[dict], dict[str, Scores]]:
    """Perplexities and Uniq of one checkpoint, and plain scores of its texts by split.

    Windowed perplexity and the validation text are for `best` only. known: plain scores of the test text
    under the same weights, if they exist. temperature: plain scores are also found at it (`Scores.tempered`), with the
    groups' probabilities for `best`.
    """
    # Uniq is computed from the plain pass over the test text.
    passes = [("perplexity_plain", "test")]
    if checkpoint == "best":
        passes += [("perplexity", "test"), ("perplexity_plain", "valid")]
    rows, plain = [], {}
    for metric, split in passes:
        first, windowed = (metric, split) == passes[0], metric == "perplexity"
        targets = np.asarray(corpus.tokens(split), dtype=np.int64)
        fields = pass_fields(metric, settings, checkpoint)
        if first and known is not None:
            scores = known
        else:
            scores = score(
                model,
                targets,
                fields["block"],
                fields["window"],
                END,
                device,
                predict=first,
                bounds=groups[0].bounds if checkpoint == "best" else (),
                temperature=None if windowed else temperature,
            )
        rows += score_rows(metric, scores, targets, groups, f"{split}@{checkpoint}", fields)
        if not windowed:
            plain[split] = scores
    return rows, plain


def pass_fields(metric: str, settings: Mapping, checkpoint: str) -> dict:
    """Signature fields of a pass over a text."""
    window = settings["window"] if metric == "perplexity" else 0
    return {"block": settings["block"], "window": window, "checkpoint": checkpoint}


def fitted_temperature(model: torch.nn.Module, corpus, settings: Mapping, device: str) -> float:
    """The temperature that fits the first FIT_TOKENS tokens of the validation text best, in plain blocks.

    Their hidden vectors are kept (FIT_TOKENS x d), because about a dozen temperatures are tried, one after the other.
    """
    part, kind = np.asarray(corpus.tokens("valid")[:FIT_TOKENS], dtype=np.int64), limits_of(device)
    with torch.inference_mode():
        kept = [batch[1:] for batch in hidden_vectors(model, part, settings["block"], 0, END, device)]

        def mean_nll(temperature: float) -> float:
            scored = [score_positions(model, *batch, kind, temperatures=(temperature,)) for batch in kept]
            return float(np.concatenate([nll[0] for nll, *_ in scored]).mean())

        return fit(mean_nll)


def fitted_rows(
    temperature: float, plain: Mapping[str, Scores], corpus, groups: list[Groups], settings: Mapping
) -> list[dict]:
    """Perplexities of validation and test text, in plain blocks, at the temperature fitted to the validation text.

    plain: scores of both texts by split, also at this temperature.
    """
    rows = temperature_rows(temperature, min(FIT_TOKENS, len(plain["valid"].nll)))
    fields = {"block": settings["block"], "temperature": "fitted", "checkpoint": "best"}
    for split in ("valid", "test"):
        scores, targets = plain[split].tempered, np.asarray(corpus.tokens(split), dtype=np.int64)
        if split == "valid":
            scores = replace(scores, groups=None)
        rows += score_rows(FITTED, scores, targets, groups, f"{split}@best", fields)
    return rows


def offset_arrays(plain: Mapping[str, Scores], corpus, groups: Groups) -> dict[str, np.ndarray]:
    """Perplexities of both texts and Uniq of the test text with each of OFFSETS, at the plain scores' temperature."""
    tempered = {split: scores.tempered for split, scores in plain.items()}
    targets = {split: np.asarray(corpus.tokens(split), dtype=np.int64) for split in plain}
    return {
        "best.offsets": OFFSETS,
        "best.offset_perplexities": offset_perplexities(tempered["test"], targets["test"], groups),
        "best.offset_perplexities_valid": offset_perplexities(tempered["valid"], targets["valid"], groups),
        "best.offset_uniq": offset_uniq(tempered["test"], groups),
    }


def offset_uniq(scores: Scores, groups: Groups) -> np.ndarray:
    """Uniq by group and in total with each of OFFSETS added to the logits of the third group, K x 4."""
    found = []
    for offset in OFFSETS:
        logits = scores.best_logits + np.array([0.0, 0.0, offset])
        chosen = np.take_along_axis(scores.best, logits.argmax(1)[:, None], axis=1)[:, 0]
        found.append(distinct(chosen, groups))
    return np.stack(found)


def offset_perplexities(scores: Scores, targets: np.ndarray, groups: Groups) -> np.ndarray:
    """Perplexities by group and in total with each of OFFSETS added to the logits of the third group, K x 4.

    An offset c changes the negative log-likelihood by log(1 + (e^c - 1) P(third group)), less c for its own types.
    """
    third = np.exp(scores.groups[:, 2])
    own = groups.of(targets) == 2
    changed = [scores.nll + np.log1p(np.expm1(offset) * third) - offset * own for offset in OFFSETS]
    return np.stack([group_perplexities(nll, targets, groups)[0] for nll in changed])


def kept_gradient_rows(model: torch.nn.Module, corpus, groups: Groups, settings: Mapping, device: str) -> list[dict]:
    """The share of the gradient of the logits that reaches the hidden vectors, by group of the target.

    Over the first FIT_TOKENS tokens of the validation text, in plain blocks.
    """
    ids = np.asarray(corpus.tokens("valid")[:FIT_TOKENS], dtype=np.int64)
    size, energies = max(1, LOGITS[limits_of(device)] // corpus.types), np.empty((2, len(ids)))
    with torch.inference_mode():
        inverse = inverse_gram(model.output_weight)
        for here, hidden, targets in hidden_vectors(model, ids, settings["block"], 0, END, device):
            parts = zip(hidden.split(size), targets.split(size), strict=True)
            found = [gradient_energies(model.logits(part), goal, model.output_weight, inverse) for part, goal in parts]
            energies[:, here] = torch.cat(found, dim=1).cpu().numpy()
    members = groups.of(ids)
    whole, kept = (np.bincount(members, weights=part, minlength=3) for part in energies)
    numbers = np.bincount(members, minlength=3)
    with np.errstate(invalid="ignore"):
        shares = np.append(kept, kept.sum()) / np.append(whole, whole.sum())
    fields = {"block": settings["block"], "checkpoint": "best"}
    return _four("gradient_kept", groups, "valid@best", shares, np.append(numbers, numbers.sum()), **fields)


def score_rows(
    metric: str, scores: Scores, targets: np.ndarray, groups: list[Groups], split: str, fields: Mapping
) -> list[dict]:
    """Perplexity by group as `metric`, and Uniq if there are predictions; for the first set also of non-rare types.

    If the scores have probabilities of groups, also the two factors of each group's perplexity.
    """
    rows = []
    for one in groups:
        values, numbers = group_perplexities(scores.nll, targets, one)
        rows += _four(metric, one, split, values, numbers, **fields)
        if not one.suffix:
            value, number = nonrare_perplexity(scores.nll, targets, one)
            rows.append(_row(metric, NONRARE, split, value, number, one, **fields))
    if scores.groups is not None:
        rows += factor_rows(metric, scores, targets, groups[0], split, fields)
    if scores.predicted is not None:
        rows += uniq_rows(scores.predicted, len(targets), groups, split, fields)
    return rows


def factor_rows(
    metric: str, scores: Scores, targets: np.ndarray, groups: Groups, split: str, fields: Mapping
) -> list[dict]:
    """The two factors of a group's perplexity: how often the model expects the group, and which type within it.

    P(y) = P(group of y) P(y | group of y), as in class-based models (Goodman 2001). `group_mass` is the mean P(group)
    over all positions, `perplexity_within` the perplexity of the group's targets under P(y | group). At the fitted
    temperature both names begin with `fitted_`, as that of the perplexity (`metric`) does.
    """
    masses = np.exp(scores.groups).mean(0)
    own = np.take_along_axis(scores.groups, groups.of(targets)[:, None], axis=1)[:, 0]
    within, numbers = group_perplexities(scores.nll + own, targets, groups)
    rows = []
    for label, mass, value, number in zip(groups.labels, masses, within[:3], numbers[:3], strict=True):
        rows.append(
            _row(metric.replace("perplexity", "group_mass"), label, split, mass, len(targets), groups, **fields)
        )
        rows.append(_row(f"{metric}_within", label, split, value, number, groups, **fields))
    return rows


def uniq_rows(predicted: np.ndarray, number: int, groups: list[Groups], split: str, fields: Mapping) -> list[dict]:
    """Uniq by group, from the arg max predictions at `number` positions (ids, each at least once)."""
    rows = []
    for one in groups:
        found = distinct(predicted, one)
        rows += _four("uniq", one, split, found, [number] * 4, **fields)
        if not one.suffix:
            rows.append(_row("uniq", NONRARE, split, found[0] + found[1], number, one, **fields))
    return rows


def weight_rows(
    weights: np.ndarray, counts: np.ndarray, groups: list[Groups], checkpoint: str
) -> tuple[list[dict], dict[str, np.ndarray]]:
    """Metric rows and arrays of an output matrix (V x d, float64); counts: of its types in training (V)."""
    rows, split, fields = [], f"weights@{checkpoint}", {"matrix": "output", "checkpoint": checkpoint}
    whole = isotropy_readings(weights)
    for one in groups:
        parts = [weights[part] for part in one.parts]
        sizes = [*map(len, parts), len(weights)]
        readings = [*map(isotropy_readings, parts), whole]
        for name, vectors in EIGENVECTORS.items():
            rows += _four(name, one, split, [of[name] for of in readings], sizes, eigenvectors=vectors, **fields)
        inner = [*map(mean_inner_product, parts)]
        for label, value, size in zip(one.labels, inner, sizes[:3], strict=True):
            rows.append(_row("inner_product", label, split, value, size, one, pairs="without_self", **fields))
    one = groups[0]
    first, _, third = one.parts
    for name, value in isotropy_readings(weights[: third.start]).items():
        vectors = EIGENVECTORS[name]
        rows.append(_row(name, NONRARE, split, value, third.start, one, eigenvectors=vectors, **fields))
    between = mean_cosine_between(weights[third], weights[first])
    pairs = (first.stop - first.start) * (third.stop - third.start)
    rows.append(_row("cosine_rare_frequent", "", split, between, pairs, one, **fields))
    total, size = "total", len(weights)
    rows.append(_row("mean_cosine", total, split, mean_cosine(weights), size, None, pairs="without_self", **fields))
    for name, value in zipfian_symmetry(weights, counts).items():
        rows.append(_row(name, total, split, value, size, None, **fields))
    singular = relative_singular_values(weights)
    rows.append(_row("singular_sum", total, split, singular.sum(), len(singular), None, **fields))
    arrays = {}
    classifier = {"classifier": "lda", "threshold": "best_balanced", "held_out": "no"}
    for name, centred in (("svd", False), ("pca", True)):
        points = plane(weights, centred)
        value = separability(points[first], points[third])
        used = first.stop - first.start + third.stop - third.start
        rows.append(_row("separability", name, split, value, used, one, **classifier, **fields))
        arrays[f"{checkpoint}.{name}"] = points.astype(np.float32)
    if checkpoint == "best":
        arrays["best.singular_values"] = singular
    return rows, arrays


def similarity_rows(weights: np.ndarray, corpus, codec: Codec, pairs: Mapping[str, list]) -> list[dict]:
    """Word similarity on each set of pairs; for BPE also with a space before the words (deviations, A22)."""
    rows = []
    marks_words = tokenizer_class(corpus.tokenizer["name"]).marks_words
    variants = {"": "", "_with_space": " "} if marks_words else {"": ""}
    for name, judged in pairs.items():
        for suffix, space in variants.items():
            found = word_similarity(judged, lambda word, space=space: codec.ids(space + word), weights, UNKNOWN)
            fields = {"words": "mean_of_pieces", "leading_space": "yes" if space else "no", "checkpoint": "best"}
            values = {"": (found.spearman, found.pairs), "_coverage": (found.coverage, found.words)}
            for what, (value, n) in values.items():
                metric = f"word_similarity{what}{suffix}"
                rows.append(_row(metric, name, "weights@best", value, n, None, **fields))
    return rows


def neighbour_rows(
    matrix: torch.Tensor,
    weights: np.ndarray,
    groups: Groups,
    queries: np.ndarray,
    known: np.ndarray,
    settings: Mapping,
) -> tuple[list[dict], dict[str, np.ndarray]]:
    """Neighbours of the queries, and the share of rare types among the neighbours of rare types.

    known: types that can be neighbours (V booleans). matrix: W on the device, weights: the same in numpy.
    """
    ids, cosines = nearest_to(weights, queries, settings["neighbours"], known)
    share, slots = rare_share(matrix, groups.bounds[1], settings["neighbours"], known)
    fields = {"neighbours": f"top{settings['neighbours']}", "types": "occurring", "checkpoint": "best"}
    arrays = {
        "best.neighbour_queries": queries,
        "best.neighbours": ids.astype(np.int32),
        "best.neighbour_cosines": cosines,
    }
    return [_row("rare_neighbours", groups.labels[2], "weights@best", share, slots, groups, **fields)], arrays


def generated_rows(
    model: torch.nn.Module, corpus, codec: Codec, context: int, settings: Mapping, device: str
) -> tuple[list[dict], dict[str, np.ndarray]]:
    """Number of distinct tokens in greedy continuations: the mean, and each example with its text."""
    asked = settings["prefixes"]
    begun = generation.prefixes(corpus.tokens("test"), asked["number"], asked["length"])
    texts = generation.greedy(model, torch.from_numpy(begun).to(device), asked["continuation"], context).cpu().numpy()
    found = np.array([len(np.unique(text)) for text in texts])
    fields = {
        "prefixes": asked["number"],
        "prefix": asked["length"],
        "continuation": asked["continuation"],
        "decoding": "greedy",
        "checkpoint": "best",
    }
    # The examples are evenly spaced over all prefixes.
    examples = min(asked["examples"], asked["number"])
    shown = np.unique(np.linspace(0, asked["number"] - 1, examples).round().astype(np.int64))
    rows = [_row("generated_uniq", "mean", "test@best", found.mean(), asked["number"], None, **fields)]
    for number, i in enumerate(shown, 1):
        rows.append(
            _row("generated_uniq", f"example{number}", "test@best", found[i], asked["continuation"], None, **fields)
        )
    arrays = {}
    for name, ids in (("prefixes", begun), ("texts", texts)):
        arrays[f"best.generated.{name}"] = np.array([codec.text(ids[i].tolist()) for i in shown], dtype=np.str_)
    return rows, arrays


def _four(metric: str, groups: Groups, split: str, values, numbers, **fields) -> list[dict]:
    """Rows of a set's three groups, and of the total (only with the set without a suffix, since all sets share it)."""
    labels = groups.labels if groups.suffix else (*groups.labels, "total")
    return [
        _row(metric, label, split, value, n, groups, **fields)
        for label, value, n in zip(labels, values, numbers, strict=False)
    ]


def _row(metric: str, group: str, split: str, value: float, n: int, groups: Groups | None, **fields) -> dict:
    """A metric row whose signature describes the groups, if there are any."""
    made = {"groups": groups.rule, "bounds": listed(groups.bounds)} if groups else {}
    return row(metric, group, split, value, n, **made, **fields)


def listed(value) -> str:
    """A value of a group rule as shown in signatures."""
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
