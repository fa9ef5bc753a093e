"""Names and accessors of translation metrics.

Metric names appear only here; claims and figures of all papers use these functions.
"""

import numpy as np

from rarepapers.metrics.type_language import language_of
from rarepapers.reporting.definition import Definition, Method
from rarepapers.reporting.results import Results

BLEU, CHRF = "bleu", "chrf"
# Area under the validation curve: metric name by score; over the first steps, and over all.
ALC = {BLEU: "alc_bleu", CHRF: "alc_chrf"}
FIRST, WHOLE = "early", "full"
# Slope of log p(y) against unigram log-frequency: through all tokens, and through figure 4's equally weighted bins.
# Group names: with the bias, and without it.
TOKEN_SLOPE, BIN_SLOPE = "calibration_token_slope", "calibration_slope"
WITH_BIAS, WITHOUT_BIAS = "full", "without_bias"

# The only other domain that is a validation text (WMT14's, for models of IWSLT14); all others are test texts.
VALIDATION_TEXT = "newstest2013"


def domains(results: Results, experiment: str) -> list[str]:
    """The other domains that an experiment's runs translated, sorted."""
    splits = {key[4] for key in results.values if key[0] == experiment and key[2] == BLEU}
    found = {split.removeprefix("domain.").partition("@")[0] for split in splits if split.startswith("domain.")}
    return sorted(found)


def test_domains(results: Results, experiment: str) -> list[str]:
    """The other domains that are test sets, as in figure 12."""
    return [domain for domain in domains(results, experiment) if domain != VALIDATION_TEXT]


def validation_domains(results: Results, experiment: str) -> list[str]:
    """The other domain that is a validation set, as in figure 16; if the corpus has none, all others."""
    found = domains(results, experiment)
    return [VALIDATION_TEXT] if VALIDATION_TEXT in found else found


def in_domain(results: Results, method: Method, metric: str = BLEU) -> dict[int, float]:
    """BLEU or chrF on the test text, by seed."""
    return results.per_seed(method, metric, split="test@best")


def out_of_domain(results: Results, method: Method, domain: str) -> dict[int, float]:
    """BLEU on the text of another domain, by seed."""
    return results.per_seed(method, BLEU, split=f"domain.{domain}@best")


def area(results: Results, method: Method, metric: str = BLEU, *, whole: bool = False) -> dict[int, float]:
    """Area under the validation curve by seed, over the experiment's first steps or over all."""
    return results.per_seed(method, ALC[metric], WHOLE if whole else FIRST, split="valid")


def best_validation(results: Results, method: Method) -> dict[int, float]:
    """Validation BLEU of the selected checkpoint, by seed."""
    return results.per_seed(method, "best_validation_bleu", split="valid")


def curve(arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
    """Steps and validation BLEU at these steps; None if training did not translate."""
    steps, values = arrays.get(f"curve.{BLEU}.steps"), arrays.get(f"curve.{BLEU}.values")
    return None if steps is None or values is None else (steps, values.astype(float))


def training_pairs(arrays: dict[str, np.ndarray]) -> int:
    """Number of pairs of a run's training text, counted by its line ends on the target side."""
    return int(arrays["counts"][arrays["vocabulary"] == "</s>"].sum())


def scaled(definition: Definition, experiment: str, steps: float, published: int) -> float:
    """A printed number of steps, scaled to the length of training here; published: the printed length."""
    return steps * definition.settings[experiment]["training"]["steps"] / published


def other_language(arrays: dict[str, np.ndarray], query: int) -> np.ndarray | None:
    """Which of the V types belong to the other language than the type `query`, as bools; None if the run lacks counts.

    A type belongs to the language whose side of the training text has the larger share of it. Types of neither language
    never belong to the other one.
    """
    if "source_counts" not in arrays:
        return None
    languages = language_of(arrays["source_counts"], arrays["counts"])
    return languages * languages[query] < 0


def rank_correlations(results: Results, method: Method) -> dict[str, dict[int, float]]:
    """Spearman's correlation of frequency rank and cosine, by query (the type as text) and seed.

    Above 0: rare types are nearer to the query than frequent ones.
    """
    wanted = (method.experiment, method.name, "cosine_rank_correlation")
    queries = dict.fromkeys(key[3] for key in results.values if key[:3] == wanted)
    found = {query: results.per_seed(method, wanted[2], query, split="weights@best") for query in queries}
    return {query: values for query, values in found.items() if values}
