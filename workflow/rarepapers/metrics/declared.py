"""Every metric, declared once: what it is, its unit, which values are better, and who measures it where.

Tables take the better direction from here, config is checked against it, docs/parameters.py writes the lists of
docs/results.md, and tests compare the rows of evaluations with it. No evaluation imports this file, so a reworded
sentence measures nothing again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

CHARACTERS, LANGUAGE, TRANSLATION = "characters", "language", "translation"


@dataclass(frozen=True)
class Where:
    """Groups and splits of a metric in one kind of evaluation.

    groups: names, or a set of `SETS` that the settings of the evaluation decide; the empty name is no group. splits:
    patterns, such as `test@best`.
    """

    groups: tuple[str, ...]
    splits: tuple[str, ...]


@dataclass(frozen=True)
class Metric:
    """A metric. better: the better direction, `up`, `down` or `none`. measured: where, by kind of evaluation."""

    says: str
    unit: str
    better: str
    measured: Mapping[str, Where]


def _first(settings: Mapping) -> list[str]:
    return settings["groups"][0]["names"]


# Groups that the settings of an evaluation decide: in words, and their names; None if the data decide them, too.
SETS = {
    "groups": (
        "groups of all sets",
        lambda settings: [name + one.get("suffix", "") for one in settings["groups"] for name in one["names"]],
    ),
    "first": ("groups of the first set", _first),
    "third": ("the third group", lambda settings: _first(settings)[2:]),
    "pairs": ("set of word pairs", lambda settings: settings.get("word_similarity", ())),
    "buckets": ("`0`, `1`, `2-4` ... `1000+`", None),
    "queries": ("query", None),
    "examples": ("`mean`, `example1`, ...", None),
    "alc": ("`early` (`early2`, ...), `full`", None),
}


def groups_of(metric: str, kind: str, settings: Mapping) -> list[str] | None:
    """The groups of a metric in evaluations of a kind with these settings; None if any name can be one."""
    names = []
    for group in METRICS[metric].measured[kind].groups:
        if group not in SETS:
            names.append(group)
        elif (chosen := SETS[group][1]) is None:
            return None
        else:
            names += chosen(settings)
    return names


def is_declared(metric: str, group: str, split: str, kind: str, settings: Mapping) -> bool:
    """Whether evaluations of a kind with these settings may have a row of this metric, group and split."""
    where = METRICS[metric].measured.get(kind) if metric in METRICS else None
    if where is None or not any(fnmatchcase(split, pattern) for pattern in where.splits):
        return False
    names = groups_of(metric, kind, settings)
    return names is None or group in names


def rows_of(kind: str) -> Iterator[tuple[str, Metric, str, str]]:
    """(name, metric, groups in words, splits in words) of every metric of a kind of evaluation, in order."""
    for name, metric in METRICS.items():
        if kind in metric.measured:
            where = metric.measured[kind]
            groups = ", ".join(SETS[one][0] if one in SETS else f"`{one}`" if one else "none" for one in where.groups)
            yield name, metric, groups, ", ".join(f"`{split}`" for split in where.splits)


def better(metric: str) -> str:
    """The better direction of a metric: up, down or none."""
    return METRICS[metric].better


_BOTH = ("HR", "LR")
_ALL = ("groups", "total", "nonrare")
_TEXT = {CHARACTERS: Where(_BOTH, ("valid@*",))}
_WEIGHTS = ("weights@*",)
_BEST = ("weights@best",)
_DATA = ("train@data", "valid@data", "test@data")
_TRANSLATIONS = ("test@best", "domain.*@best")
_ISOTROPY = {
    CHARACTERS: Where(_BOTH, _WEIGHTS),
    LANGUAGE: Where(_ALL, _WEIGHTS),
    TRANSLATION: Where(_ALL, _WEIGHTS),
}
_ZIPFIAN = {
    CHARACTERS: Where(_BOTH, _WEIGHTS),
    LANGUAGE: Where(("total",), _WEIGHTS),
    TRANSLATION: Where(("total",), _WEIGHTS),
}


def _of_types(*groups: str, splits: tuple[str, ...] = _WEIGHTS) -> dict[str, Where]:
    """Where language and translation models have the same groups and splits."""
    return dict.fromkeys((LANGUAGE, TRANSLATION), Where(groups, splits))


_FITTED = dict.fromkeys((CHARACTERS, LANGUAGE, TRANSLATION), Where(("",), ("valid@best",)))
_RATIO = {CHARACTERS: Where(("LR",), ("train",))}
_OF_PAIRS = {LANGUAGE: Where(("pairs",), _BEST)}
_SCORES = {TRANSLATION: Where(("",), _TRANSLATIONS)}
_OF_BIAS = {TRANSLATION: Where(("start", "end", "change"), ("train",))}
_DIVERGENCES = {TRANSLATION: Where(("unigram", "uniform", "empirical"), ("train",))}
_ALIGNED = {TRANSLATION: Where(("first", "total"), _BEST)}

METRICS: dict[str, Metric] = {
    # Predictions.
    "perplexity": Metric(
        "of the held-out text: windowed for a language model (of each block of `block` tokens the first `window` are "
        "context only); of the target side, given the true words before each token, for a translation model",
        "perplexity",
        "down",
        {
            CHARACTERS: Where(_BOTH, ("valid@*",)),
            LANGUAGE: Where(_ALL, ("test@best",)),
            TRANSLATION: Where(_ALL, ("test@*", "valid@best")),
        },
    ),
    "perplexity_plain": Metric(
        "perplexity of blocks without context before them",
        "perplexity",
        "down",
        {LANGUAGE: Where(_ALL, ("test@best", "test@last", "valid@best"))},
    ),
    "perplexity_within": Metric(
        "of the targets in a group, if the model knew the group: P(y) / P(group of y); the other factor of "
        "`perplexity` is how well the model expects the group",
        "perplexity",
        "down",
        {LANGUAGE: Where(("first",), ("test@best",))},
    ),
    "best_perplexity": Metric("at the temperature that is best for this text", "perplexity", "down", _TEXT),
    "best_temperature": Metric("the temperature of `best_perplexity`", "temperature", "none", _TEXT),
    "accuracy": Metric("share of positions whose target is the arg max", "share", "up", _TEXT),
    "recall@5": Metric("share of positions whose target is among the five most likely types", "share", "up", _TEXT),
    "mrr": Metric("mean reciprocal rank of the target", "share", "up", _TEXT),
    "mean_rank": Metric("mean rank of the target, 1 at best", "rank", "down", _TEXT),
    "target_probability": Metric("mean probability of the target", "share", "up", _TEXT),
    "tail_mass": Metric("mean probability outside the five most likely tokens", "share", "none", _TEXT),
    "fitted_temperature": Metric(
        "temperature with the highest likelihood of the validation text (for language models, of "
        "[its beginning](comparison.md#choice-and-report))",
        "temperature",
        "none",
        _FITTED,
    ),
    "temperature_at_bound": Metric("1 if it is an end of the searched interval, else 0", "0 or 1", "none", _FITTED),
    "fitted_perplexity": Metric(
        "perplexity at that temperature; for characters the total weights the languages as in training, and single "
        "languages exist for the test text only",
        "perplexity",
        "down",
        {
            CHARACTERS: Where((*_BOTH, "total"), ("valid@best", "test@best")),
            LANGUAGE: Where(_ALL, ("valid@best", "test@best")),
            TRANSLATION: Where(_ALL, ("valid@best", "test@best")),
        },
    ),
    "fitted_perplexity_within": Metric(
        "`perplexity_within` at that temperature, in plain blocks",
        "perplexity",
        "down",
        {LANGUAGE: Where(("first",), ("test@best",))},
    ),
    "group_mass": Metric(
        "share of the tokens; at `test@best`, for the first set, the mean probability that the model gives to the "
        "group",
        "share",
        "none",
        {LANGUAGE: Where(("groups",), (*_DATA, "test@best")), TRANSLATION: Where(("groups",), _DATA)},
    ),
    "fitted_group_mass": Metric(
        "the same probability at the fitted temperature, in plain blocks",
        "share",
        "none",
        {LANGUAGE: Where(("first",), ("test@best",))},
    ),
    "uniq": Metric(
        "distinct tokens among the arg max predictions; for characters those of each language in its own text, for "
        "translations the distinct types in the hypotheses (both with `fit_temperature` only)",
        "types",
        "up",
        {
            CHARACTERS: Where(_BOTH, ("test@best",)),
            LANGUAGE: Where(_ALL, ("test@best", "test@last")),
            TRANSLATION: Where(("first", "total"), _TRANSLATIONS),
        },
    ),
    "uniq_human": Metric(
        "distinct tokens among the targets", "types", "none", _of_types("groups", "total", splits=("test@data",))
    ),
    "generated_uniq": Metric(
        "distinct tokens of greedy continuations", "types", "up", {LANGUAGE: Where(("examples",), ("test@best",))}
    ),
    "group_types": Metric("number of types", "types", "none", _of_types("groups", splits=("train@data",))),
    "gradient_kept": Metric(
        "share of the squared norm of the logits' gradient that lies in the column space of the output matrix and so "
        "reaches the hidden vectors, over positions with targets in the group (arXiv 2603.10145; first 32,768 tokens, "
        "plain blocks)",
        "share",
        "none",
        {LANGUAGE: Where(("first", "total"), ("valid@best",))},
    ),
    # Embeddings.
    "isotropy_sign_free": Metric(
        "I(W) over both signs of every eigenvector; used in tables and verdicts", "I(W)", "up", _ISOTROPY
    ),
    "isotropy_lowest": Metric("the smallest I(W) with one sign per eigenvector", "I(W)", "up", _ISOTROPY),
    "isotropy_highest": Metric("the largest I(W) with one sign per eigenvector", "I(W)", "up", _ISOTROPY),
    "isotropy_linalg_eig": Metric("I(W) with the signs that the authors' routine returns", "I(W)", "up", _ISOTROPY),
    "input_isotropy_sign_free": Metric(
        "the same as `isotropy_sign_free` for an untied input matrix",
        "I(W)",
        "up",
        {CHARACTERS: Where(_BOTH, _WEIGHTS)},
    ),
    "zipfian_centrality": Metric(
        "1 - \\|mean\\| / mean length of the rows weighted by how often their types occur (arXiv 2411.00680), 1 at "
        "best",
        "share",
        "up",
        _ZIPFIAN,
    ),
    "zipfian_isotropy": Metric(
        "entropy of the shares of variance of these weighted rows over ln d, 1 at best", "share", "up", _ZIPFIAN
    ),
    "cosine_rare_frequent": Metric(
        "mean cosine of a type of the third group with one of the first", "cosine", "none", _of_types("")
    ),
    "mean_cosine": Metric("mean cosine of all embeddings, S(w)", "cosine", "down", _of_types("total")),
    "inner_product": Metric("mean inner product of two types of the group", "product", "none", _of_types("groups")),
    "singular_sum": Metric(
        "sum of the singular values divided by the largest", "largest value", "none", _of_types("total")
    ),
    "separability": Metric(
        "balanced accuracy of a linear classifier of the third group against the first, in the plane, at its best "
        "threshold",
        "share",
        "none",
        _of_types("svd", "pca"),
    ),
    "rare_neighbours": Metric(
        "share of rare types among the nearest neighbours of rare types; special types and types without occurrences "
        "are left out",
        "share",
        "down",
        _of_types("third", splits=_BEST),
    ),
    "mask_cosine": Metric(
        "mean cosine on the mask",
        "cosine",
        "none",
        {CHARACTERS: Where(("NA", "UC", "LC", "T", "C", "T+C", "off", "HR-HR", "LR-LR", "HR-LR"), _WEIGHTS)},
    ),
    "related_neighbours": Metric(
        "neighbours that are related characters: of 12 for `Aa`, a share over 52 letters of both languages for "
        "`letters`",
        "neighbours or share",
        "up",
        {CHARACTERS: Where(("Aa", "letters"), _WEIGHTS)},
    ),
    "pca_distance": Metric(
        "mean distance of the two versions of a character in the plane of the first two components",
        "length",
        "none",
        {CHARACTERS: Where(("",), _WEIGHTS)},
    ),
    "pca_distance_relative": Metric(
        "the same divided by the mean over all HR-LR pairs", "share", "none", {CHARACTERS: Where(("",), _WEIGHTS)}
    ),
    "word_similarity": Metric("Spearman's correlation with human scores x 100", "x 100", "up", _OF_PAIRS),
    "word_similarity_coverage": Metric("share of words whose pieces are all known", "share", "none", _OF_PAIRS),
    "word_similarity_with_space": Metric(
        "`word_similarity` of words with a preceding space, as inside a line (not for word-level corpora)",
        "x 100",
        "up",
        _OF_PAIRS,
    ),
    "word_similarity_coverage_with_space": Metric("share of these words that are known", "share", "none", _OF_PAIRS),
    "align_similarity": Metric("AlignSim over types with a link", "share", "up", _ALIGNED),
    "align_similarity_skipped": Metric("number of types without a link", "types", "none", _ALIGNED),
    "align_similarity_others": Metric("AlignSim with a type left out of its own vectors", "share", "up", _ALIGNED),
    "align_similarity_others_skipped": Metric("number of types without a link to another", "types", "none", _ALIGNED),
    "cosine_rank_correlation": Metric(
        "Spearman of cosine and frequency rank, by counts of the target side; types with equal counts share a rank",
        "correlation",
        "none",
        {TRANSLATION: Where(("queries",), _BEST)},
    ),
    "neighbours_other_language": Metric(
        "share of the queries' neighbours that belong to the other language",
        "share",
        "up",
        {TRANSLATION: Where(("",), _BEST)},
    ),
    # Gradients of a training.
    "ratio_of_average": Metric(
        "sum over steps of \\|g1\\| + \\|g2\\| divided by that of \\|g3\\|; mean over LR tokens (an array "
        "has the value of each)",
        "x",
        "none",
        _RATIO,
    ),
    "average_of_ratio": Metric(
        "mean over steps of (\\|g1\\| + \\|g2\\|) / \\|g3\\|; steps without a marginal gradient use its mean norm",
        "x",
        "none",
        _RATIO,
    ),
    "average_of_ratio_dropped": Metric("the same without those steps", "x", "none", _RATIO),
    # Translations.
    "bleu": Metric(
        "of plain text by sacrebleu, with the tokenizer of the target language, without case if the corpus has none; "
        "the signature names beam and length exponent",
        "BLEU",
        "up",
        _SCORES,
    ),
    "chrf": Metric("as `bleu`", "chrF", "up", _SCORES),
    "chrf++": Metric("as `bleu`", "chrF++", "up", _SCORES),
    "reference_bleu": Metric(
        "BLEU of the references against themselves once prepared and decoded, the highest that a translation can have: "
        "preparation can lose quotes or compatibility characters, and references are scored as published",
        "BLEU",
        "none",
        {TRANSLATION: Where(("",), ("valid", "test", "domain.*"))},
    ),
    "bleu_tokenised": Metric(
        "of Moses tokens, compounds split, no smoothing; not comparable with `bleu`", "BLEU", "up", _SCORES
    ),
    "comet": Metric(
        "mean COMET of the sentences by the model in the signature; only with config key `comet`",
        "COMET",
        "up",
        _SCORES,
    ),
    "word_f1": Metric(
        "of words by training frequency; n: words of hypotheses and references",
        "share",
        "up",
        {TRANSLATION: Where(("buckets",), _TRANSLATIONS)},
    ),
    "alc_bleu": Metric(
        "area under the validation BLEU curve: trapezoid over the interval; 0 at step 0 unless measured",
        "BLEU",
        "up",
        {TRANSLATION: Where(("alc",), ("valid",))},
    ),
    "alc_chrf": Metric("the same for chrF", "chrF", "up", {TRANSLATION: Where(("alc",), ("valid",))}),
    "best_validation_bleu": Metric("highest of the history", "BLEU", "up", {TRANSLATION: Where(("",), ("valid",))}),
    "best_validation_chrf": Metric("highest of the history", "chrF", "up", {TRANSLATION: Where(("",), ("valid",))}),
    "calibration_slope": Metric(
        "log p(gold) against unigram log-frequency: least-squares line through bins",
        "nats per nat",
        "none",
        {TRANSLATION: Where(("full", "without_bias"), ("test@best",))},
    ),
    "calibration_token_slope": Metric(
        "the same line through tokens",
        "nats per nat",
        "none",
        {TRANSLATION: Where(("full", "without_bias"), ("test@best",))},
    ),
    "nearest_to_unigram_step": Metric(
        "step with the least KL(unigram, model)", "steps", "none", {TRANSLATION: Where(("",), ("train",))}
    ),
    "divergence_nearest_to_unigram": Metric("all three divergences at that step", "nats", "none", _DIVERGENCES),
    "divergence_at_start": Metric("before the first step", "nats", "none", _DIVERGENCES),
    "output_bias_norm": Metric(
        "of the output bias; `change`: the largest change, as a share of the norm of the log-unigram bias",
        "norm, or share",
        "none",
        _OF_BIAS,
    ),
    "output_bias_divergence": Metric(
        "KL(unigram, softmax(bias)); `change`: the largest change, as a share of KL(unigram, uniform)",
        "nats, or share",
        "none",
        _OF_BIAS,
    ),
}
