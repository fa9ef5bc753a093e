"""Metrics and arrays of a translation model (natural_bias section 4; agg 5.3; agps 2, 4.1 and appendix C).

Each function returns metric rows as listed in docs/results.md; some also return arrays. Metrics of weights and groups
come from `language`, since they are the same for every output matrix.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from rarepapers.core.errors import UserError
from rarepapers.data.alignment.links import count_lines, link_arrays
from rarepapers.data.lines import numbered_lines
from rarepapers.data.pairs.pair_folder import side_file
from rarepapers.data.pairs.preparation import split_compounds
from rarepapers.data.pairs.prepared_pairs import load_pairs
from rarepapers.evaluation import bias_record, language
from rarepapers.evaluation.decoding import Decoding
from rarepapers.evaluation.metric_rows import row
from rarepapers.evaluation.pair_scores import PairScores, score_pairs
from rarepapers.evaluation.temperature import FITTED, fit, temperature_rows
from rarepapers.evaluation.text_scores import Scores
from rarepapers.metrics import learning_curve, translation_scores
from rarepapers.metrics.calibration import calibrate, log_frequencies
from rarepapers.metrics.co_occurrences import count
from rarepapers.metrics.frequency_rank import query_cosines, rank_correlations
from rarepapers.metrics.type_language import language_of, other_language_share
from rarepapers.metrics.word_f1 import training_frequencies, word_f1
from raretok.metrics.align_similarity import TAU, align_similarity
from raretok.metrics.group_statistics import Groups, distinct


def score_rows(scores: PairScores, groups: Sequence[Groups], split: str) -> list[dict]:
    """Perplexity of the target side by group, given the true prefix of every token."""
    fields = {"teacher": "forced", "skipped_pairs": scores.skipped, "checkpoint": split.partition("@")[2]}
    return language.score_rows("perplexity", Scores(scores.nll, None), scores.targets, groups, split, fields)


def fitted_rows(model, pairs: Mapping, groups: Sequence[Groups], context: int, device: str) -> list[dict]:
    """Perplexities of validation and test text at the temperature fitted to the former; pairs: by split."""

    def scored(split, temperature):
        return score_pairs(model, pairs[split], context, device, temperature=temperature)

    temperature = fit(lambda value: float(scored("valid", value).nll.mean()))
    found = {split: scored(split, temperature) for split in ("valid", "test")}
    rows = temperature_rows(temperature, len(found["valid"].nll))
    fields = {"teacher": "forced", "temperature": "fitted", "checkpoint": "best"}
    for split, scores in found.items():
        rows += language.score_rows(FITTED, Scores(scores.nll, None), scores.targets, groups, f"{split}@best", fields)
    return rows


def used_rows(translated: Sequence[Sequence[int]], groups: Groups, split: str) -> list[dict]:
    """Uniq of translations (ids of each sentence): number of distinct types, by group and in total."""
    ids = np.concatenate([np.asarray(sentence, dtype=np.int64) for sentence in translated])
    fields = {"groups": groups.rule, "of": "translations", "checkpoint": split.partition("@")[2]}
    found = zip((*groups.labels, "total"), distinct(ids, groups), strict=True)
    return [row("uniq", label, split, value, len(ids), **fields) for label, value in found]


def translation_rows(
    translated: Sequence[Sequence[int]], pairs, corpus, codec, decoding: Decoding, split: str, tokenised: bool
) -> tuple[list[dict], list[str]]:
    """BLEU, chrF and chrF++ of hypotheses (ids of each sentence) against the targets of `pairs`; and their plain text.

    tokenised: also compute the compound-split BLEU of Moses tokens.
    """
    texts, references = [codec.detokenised(ids) for ids in translated], pairs.texts("target")
    rows = plain_rows(texts, references, corpus, decoding, split)
    if tokenised:
        sides = [codec.tokenised(ids) for ids in translated], [codec.words(line) for line in references]
        sides = ([split_compounds(line) for line in lines] for lines in sides)
        score = translation_scores.tokenised_bleu(*sides, corpus.scoring)
        rows.append(_score_row("bleu_tokenised", score, len(texts), decoding, split))
    return rows, texts


def plain_rows(texts: Sequence[str], references: Sequence[str], corpus, decoding: Decoding, split: str) -> list[dict]:
    """BLEU, chrF and chrF++ of plain texts, one reference per sentence."""
    scores = {
        "bleu": translation_scores.bleu(texts, references, corpus.scoring),
        "chrf": translation_scores.chrf(texts, references, corpus.scoring),
        "chrf++": translation_scores.chrf(texts, references, corpus.scoring, word_order=2),
    }
    return [_score_row(name, score, len(texts), decoding, split) for name, score in scores.items()]


def reference_rows(corpus, splits: Iterable[str]) -> list[dict]:
    """BLEU of the references against themselves, after preparation; empty if the corpus does not record it."""
    known = {split: corpus.reference_bleu[split] for split in splits if split in corpus.reference_bleu}
    return [
        row("reference_bleu", "", split, score["value"], score["pairs"], score["signature"])
        for split, score in known.items()
    ]


def _score_row(name: str, score: translation_scores.Score, n: int, decoding: Decoding, split: str) -> dict:
    made = f"{decoding.described}|checkpoint:{split.partition('@')[2]}"
    return row(name, "", split, score.value, n, f"{score.signature}|{made}")


def target_frequencies(corpus) -> Counter:
    """Number of occurrences of each word in the target side of the training text, read line by line."""
    lines = (line for _, line in numbered_lines(side_file(corpus.folder / "train", "target", "txt")))
    return training_frequencies(lines, corpus.scoring)


def f1_rows(
    hypotheses: Sequence[str], references: Sequence[str], frequencies: Counter, settings: Mapping, corpus, split: str
) -> list[dict]:
    """F1 of words by training frequency; each row's n is the number of words of references and hypotheses."""
    scoring = corpus.scoring
    fields = {
        "words": scoring.bleu().tokenizer_signature,
        "case": "lc" if scoring.lowercase else "mixed",
        "frequencies": "train.target",
    }
    found = word_f1(hypotheses, references, frequencies, settings["f1_buckets"], scoring)
    return [row("word_f1", one.label, split, one.f1, one.given + one.wanted, **fields) for one in found]


def calibration_rows(scores: PairScores, counts: np.ndarray, bins: int) -> tuple[list[dict], dict[str, np.ndarray]]:
    """Slopes and bins of log p(gold) against unigram log-frequency, for the whole model and without its bias."""
    log_unigram = log_frequencies(counts)[scores.targets]
    parts = {"full": scores.nll}
    if scores.nll_without_bias is not None:
        parts["without_bias"] = scores.nll_without_bias
    rows, arrays = [], {}
    fields = {"bins": bins, "width": "equal", "smoothing": "add_one", "end_of_sentence": "counted"}
    for group, nll in parts.items():
        found = calibrate(log_unigram, -nll, bins)
        points = int((found.numbers > 0).sum())
        rows.append(row("calibration_slope", group, "test@best", found.slope, points, **fields))
        rows.append(row("calibration_token_slope", group, "test@best", found.token_slope, len(nll), **fields))
        shared = {"edges": found.edges, "numbers": found.numbers, "places": found.places}
        arrays |= {f"best.calibration.{name}": array for name, array in (shared | {group: found.heights}).items()}
    return rows, arrays


def curve_rows(history: Path, ends: Sequence[int]) -> tuple[list[dict], dict[str, np.ndarray]]:
    """Area under the validation curves (ALC) until each of `ends` and the last measurement; best values; curves.

    Empty for a training that did not decode.
    """
    rows, arrays = [], {}
    for metric, split in learning_curve.CURVES.items():
        steps, values = learning_curve.read_curve(history, split)
        if not len(steps):
            continue
        # Groups are numbered, because the ends depend on the scale.
        intervals = {f"early{number}" if number > 1 else "early": end for number, end in enumerate(ends, 1)}
        for group, end in (intervals | {"full": None}).items():
            value, last = learning_curve.area(steps, values, end)
            made = {"rule": "trapezoid", "updates": last, "update_0": "0_unless_measured"}
            rows.append(row(f"alc_{metric}", group, "valid", value, len(steps), **made))
        rows.append(row(f"best_validation_{metric}", "", "valid", values.max(), len(steps)))
        arrays |= {f"curve.{metric}.steps": steps, f"curve.{metric}.values": values}
    return rows, arrays


def observed_rows(observed: Mapping[str, np.ndarray], counts: np.ndarray) -> list[dict]:
    """Observations of predictions and output bias, summarised as single numbers; counts: of targets, V."""
    rows = []
    for group, value in bias_record.nearest_to_unigram(observed).items():
        n = len(observed["divergence.steps"])
        if group == "step":
            rows.append(row("nearest_to_unigram_step", "", "train", value, n, unit="updates"))
        else:
            rows.append(row("divergence_nearest_to_unigram", group, "train", value, n, unit="nats"))
    for group, value in bias_record.divergence_at_start(observed).items():
        rows.append(row("divergence_at_start", group, "train", value, 1, unit="nats"))
    for name, values in bias_record.bias_changes(observed, counts).items():
        n, fields = len(observed[f"output_bias.{name}"]), {"change": "share_of_zero_to_unigram"}
        rows += [row(f"output_bias_{name}", group, "train", value, n, **fields) for group, value in values.items()]
    return rows


def alignment_rows(weights: np.ndarray, groups: Groups, corpus, links: Path, device: str) -> list[dict]:
    """AlignSim, means over the linked types of each group and of all; and the number of types without a link.

    weights: W (V x d). links: of the training split (rule align). Raises UserError if they belong to another text.
    """
    pairs = load_pairs(corpus, "train")
    if count_lines(links) != len(pairs):
        raise UserError(
            f"{links} has links of {count_lines(links):,} pairs, but the training split of {corpus.name} has "
            f"{len(pairs):,}; delete it and align again"
        )
    gold = count(link_arrays(links), pairs, corpus.types)
    rows, fields = [], {"gold": "symmetric_counts", "checkpoint": "best"}
    parts = dict(zip(groups.labels, groups.parts, strict=True)) | {"total": slice(0, corpus.types)}
    for name, itself in (("align_similarity", True), ("align_similarity_others", False)):
        similarity = align_similarity(weights, gold, device=device, itself=itself)
        linked = gold.squared_lengths(itself) > 0
        made = {"groups": groups.rule, "tau": f"{TAU:g}", "self": "counted" if itself else "left_out", **fields}
        for label, part in parts.items():
            number, types = int(linked[part].sum()), linked[part].size
            value = similarity[part][linked[part]].mean() if number else float("nan")
            rows.append(row(name, label, "weights@best", value, number, **made))
            rows.append(row(f"{name}_skipped", label, "weights@best", types - number, types, **made))
    return rows


def query_rows(
    weights: np.ndarray, neighbours: np.ndarray, queries: np.ndarray, known: np.ndarray, corpus
) -> tuple[list[dict], dict[str, np.ndarray]]:
    """Rank correlation of frequency and cosine for each query, and the share of neighbours in the other language.

    weights: W, V x d. neighbours: ids of the nearest types, q x k. known: types that count, V booleans.
    """
    cosines, counts = query_cosines(weights, queries), np.asarray(corpus.counts, dtype=np.int64)
    types = int(known.sum()) - 1
    fields = {"correlation": "spearman", "types": "occurring", "checkpoint": "best"}
    rows = [
        row("cosine_rank_correlation", corpus.symbols[query], "weights@best", value, types, **fields)
        for query, value in zip(queries, rank_correlations(cosines, queries, known, counts), strict=True)
    ]
    share = other_language_share(queries, neighbours, language_of(corpus.source_counts, corpus.counts))
    fields = {"language": "larger_share", "checkpoint": "best"}
    rows.append(row("neighbours_other_language", "", "weights@best", share, neighbours.size, **fields))
    return rows, {"best.query_cosines": cosines.astype(np.float32)}
