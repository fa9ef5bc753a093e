"""What evaluation says of models that translate, by the names under which it writes it.

The names stand here alone: claims and figures of all papers ask these functions.
"""

import numpy as np

from raretok.metrics.type_language import language_of
from raretok.reporting.definition import Definition, Method
from raretok.reporting.results import Results

BLEU, CHRF = "bleu", "chrf"
# Area under the validation curve: name of the metric by what is measured; over the first updates, and over all.
ALC = {BLEU: "alc_bleu", CHRF: "alc_chrf"}
FIRST, WHOLE = "early", "full"
# Slope of log p(y) against unigram log-frequency: through all tokens, and through the bins of figure 4, each of which
# counts alike. Names of the groups: with the bias in its place, and dropped.
TOKEN_SLOPE, BIN_SLOPE = "calibration_token_slope", "calibration_slope"
WITH_BIAS, WITHOUT_BIAS = "full", "without_bias"

# The other domain that is a validation text (WMT14's, for models of IWSLT14); all others are test texts.
VALIDATION_TEXT = "newstest2013"


def domains(results: Results, experiment: str) -> list[str]:
    """The other domains whose text the runs of an experiment translated, in alphabetical order."""
    splits = {key[4] for key in results.values if key[0] == experiment and key[2] == BLEU}
    found = {split.removeprefix("domain.").partition("@")[0] for split in splits if split.startswith("domain.")}
    return sorted(found)


def test_domains(results: Results, experiment: str) -> list[str]:
    """Those whose text is a test set, as in figure 12."""
    return [domain for domain in domains(results, experiment) if domain != VALIDATION_TEXT]


def validation_domains(results: Results, experiment: str) -> list[str]:
    """The other domain whose text is a validation set, as in figure 16; of a corpus without one, all others."""
    found = domains(results, experiment)
    return [VALIDATION_TEXT] if VALIDATION_TEXT in found else found


def in_domain(results: Results, method: Method, metric: str = BLEU) -> dict[int, float]:
    """BLEU or chrF of the test text by seed."""
    return results.per_seed(method, metric, split="test@best")


def out_of_domain(results: Results, method: Method, domain: str, metric: str = BLEU) -> dict[int, float]:
    """BLEU or chrF of another domain's text by seed."""
    return results.per_seed(method, metric, split=f"domain.{domain}@best")


def area(results: Results, method: Method, metric: str = BLEU, *, whole: bool = False) -> dict[int, float]:
    """Area under the validation curve by seed, over the first updates that the experiment names, or over all."""
    return results.per_seed(method, ALC[metric], WHOLE if whole else FIRST, split="valid")


def best_validation(results: Results, method: Method) -> dict[int, float]:
    """Validation BLEU of the checkpoint that training selects by it, by seed."""
    return results.per_seed(method, "best_validation_bleu", split="valid")


def curve(arrays: dict[str, np.ndarray], metric: str = BLEU) -> tuple[np.ndarray, np.ndarray] | None:
    """Updates and BLEU or chrF of the validation text after them; None where training did not translate it."""
    steps, values = arrays.get(f"curve.{metric}.steps"), arrays.get(f"curve.{metric}.values")
    return None if steps is None or values is None else (steps, values.astype(float))


def training_pairs(arrays: dict[str, np.ndarray]) -> int:
    """How many pairs a run's training text has: as many as its target side has ends of lines."""
    return int(arrays["counts"][arrays["vocabulary"] == "</s>"].sum())


def scaled(definition: Definition, experiment: str, updates: float, published: int) -> float:
    """A printed number of updates at this scale, as it stands to the whole training; published: length as printed."""
    return updates * definition.settings[experiment]["training"]["steps"] / published


def other_language(arrays: dict[str, np.ndarray], query: int) -> np.ndarray | None:
    """Which of the V types are of the other language than the type `query`; None where a run does not tell.

    A type is of the language whose side of the training text has the larger share of it; one of neither is of no other.
    """
    if "source_counts" not in arrays:
        return None
    languages = language_of(arrays["source_counts"], arrays["counts"])
    return languages * languages[query] < 0


def rank_correlations(results: Results, method: Method) -> dict[str, dict[int, float]]:
    """Of each query, as its type is written: Spearman's correlation of types' index with their cosine, by seed.

    Above 0: rare types are nearer to the query than frequent ones.
    """
    wanted = (method.experiment, method.name, "cosine_rank_correlation")
    return {key[3]: values for key, values in results.values.items() if key[:3] == wanted and key[4] == "weights@best"}
