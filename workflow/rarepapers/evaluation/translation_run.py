"""Evaluation of a run of a translation model: translations, weights of both checkpoints, and observations.

Cost: the test split and each domain are decoded once (best checkpoint); the test split is scored twice (once if the
last checkpoint is the best) and the validation split once; AlignSim, if requested, takes V^2 d products.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from rarepapers.core.errors import UserError
from rarepapers.data.codec import codec_of
from rarepapers.data.pairs.prepared_pairs import load_pairs
from rarepapers.evaluation import language, translation
from rarepapers.evaluation.comet import comet_rows
from rarepapers.evaluation.decoding import Decoding, decode
from rarepapers.evaluation.language_run import group_sets, observation_rows, of_corpus, same_weights
from rarepapers.evaluation.metric_rows import Found
from rarepapers.evaluation.pair_scores import score_pairs
from rarepapers.evaluation.queries import query_ids
from rarepapers.evaluation.snapshots import measure_snapshots
from rarepapers.metrics.neighbours import occurring
from rarepapers.models import CHECKPOINTS
from rarepapers.models.building import load_model
from raretok.metrics.group_statistics import Groups

DOMAIN = "domain."


def evaluate_run(
    folder: Path,
    model_settings: Mapping,
    corpus,
    settings: Mapping,
    links: Path | None = None,
    device: str = "cpu",
) -> Found:
    """All metrics and arrays of the run in `folder`, as listed in docs/results.md, and its translations.

    corpus: a `prepared_corpus.Corpus` of kind translation. settings: a `config_types.TranslationEvaluation`.
    links: word links of its training split, for AlignSim. All settings are checked before the first forward
    pass; raises UserError.
    """
    if settings.get("alignment") and links is None:
        raise UserError("evaluation.alignment is true, but no links are given; add --links PATH (rule align)")
    if settings.get("tokenised_bleu") and corpus.scoring.bleu().tokenizer_signature != "13a":
        raise UserError(
            f"evaluation.tokenised_bleu compares Moses tokens, but the BLEU of corpus {corpus.name} has another "
            f"tokenizer ({corpus.scoring.bleu().tokenizer_signature}), for words without blanks; leave it out"
        )
    groups = group_sets(settings, corpus)
    splits = ["test"] + [split for split in corpus.splits if settings.get("domains") and split.startswith(DOMAIN)]
    pairs = {split: load_pairs(corpus, split) for split in (*splits, "valid")}
    tying = model_settings.get("tying")
    queried(settings, corpus, groups[0].bounds[1], tying)  # raises UserError for a wrong query
    context = model_settings["context"]
    seen = observation_rows(folder / "observations.npz")
    found = of_corpus(corpus, groups)
    found.rows += translation.reference_rows(corpus, pairs)
    found.rows += translation.observed_rows(seen, corpus.counts)
    found.arrays["source_counts"] = np.asarray(corpus.source_counts, dtype=np.int64)
    found.add(translation.curve_rows(folder / "history.csv", settings.get("alc", ())))
    codec, scores, previous = codec_of(corpus), None, None
    for checkpoint, file in CHECKPOINTS.items():
        model = load_model(folder / file, dict(model_settings), vocabulary=corpus.types, device=device)
        # If the last checkpoint is the best, which is common, its text is scored already.
        if previous is None or not same_weights(model, previous):
            scores = score_pairs(model, pairs["test"], context, device)
        previous = model
        found.rows += translation.score_rows(scores, groups, f"test@{checkpoint}")
        weights = model.output_weight.detach().float().cpu().numpy().astype(np.float64)
        found.add(matrix_rows(model.output_weight, weights, corpus, groups, settings, tying, checkpoint))
        if checkpoint == "best":
            valid = score_pairs(model, pairs["valid"], context, device)
            found.rows += translation.score_rows(valid, groups, "valid@best")
            if settings.get("fit_temperature"):
                found.rows += translation.fitted_rows(model, pairs, groups, context, device)
            if settings.get("calibration_bins") and len(scores.nll):
                found.add(translation.calibration_rows(scores, corpus.counts, settings["calibration_bins"]))
            frequencies = translation.target_frequencies(corpus) if settings.get("f1_buckets") else Counter()
            for split in splits:
                rows, texts = translate_split(model, pairs[split], corpus, codec, settings, frequencies, groups, device)
                found.rows, found.hypotheses[split] = found.rows + rows, texts
            if settings.get("alignment"):
                found.rows += translation.alignment_rows(weights, groups[0], corpus, links, device)
    found.arrays |= measure_snapshots(folder / "snapshots.safetensors", groups[0]) | seen
    return found


def matrix_rows(
    matrix: torch.Tensor,
    weights: np.ndarray,
    corpus,
    groups: list[Groups],
    settings: Mapping,
    tying: str | None,
    checkpoint: str,
) -> tuple[list[dict], dict[str, np.ndarray]]:
    """Metric rows and arrays computed from the output matrix, with neighbours and queries for `best` only.

    matrix: W on the device, weights: the same (V x d, float64). corpus: its name, symbols, counts of both sides and
    special ids.
    """
    found = Found()
    found.add(language.weight_rows(weights, corpus.counts, groups, checkpoint))
    if checkpoint == "best":
        known, queries = queried(settings, corpus, groups[0].bounds[1], tying)
        found.add(language.neighbour_rows(matrix, weights, groups[0], queries, known, settings))
        found.add(translation.query_rows(weights, found.arrays["best.neighbours"], queries, known, corpus))
    return found.rows, found.arrays


def translate_split(
    model: torch.nn.Module, pairs, corpus, codec, settings: Mapping, frequencies: Counter, groups: list, device: str
) -> tuple[list[dict], list[str]]:
    """Metric rows of the translations of one split by the best checkpoint, and their plain lines.

    codec: of the corpus. frequencies: of words in the training text, if settings ask for F1. groups: for Uniq of the
    translations, if settings ask for a fitted temperature.
    """
    decoding, split = Decoding(settings["beam"], settings["length_exponent"]), f"{pairs.split}@best"
    ids = decode(model, pairs, decoding)
    rows, texts = translation.translation_rows(
        ids, pairs, corpus, codec, decoding, split, settings.get("tokenised_bleu")
    )
    if settings.get("comet"):
        sides = pairs.texts("source"), texts, pairs.texts("target")
        rows += comet_rows(settings["comet"], *sides, decoding, split, device)
    if settings.get("fit_temperature"):
        rows += translation.used_rows(ids, groups[0], split)
    if settings.get("f1_buckets"):
        rows += translation.f1_rows(texts, pairs.texts("target"), frequencies, settings, corpus, split)
    return rows, texts


def queried(settings: Mapping, corpus, first_rare: int, tying: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Types that count as neighbours (V booleans), and the ids of the queries, which are among them.

    These are the types of the target side; with one matrix in all three places also those of the source side, which
    agps examines across languages. Rare queries are drawn from the target side's types, unless none of them is in the
    third group.
    """
    of_target = occurring(corpus.counts, corpus.special)
    known = of_target
    if tying == "three_way":
        known = occurring(corpus.counts + corpus.source_counts, corpus.special)
    drawn = of_target if isinstance(settings["queries"], Mapping) and of_target[first_rare:].any() else known
    return known, query_ids(settings["queries"], corpus.symbols, drawn, first_rare, corpus.name)
