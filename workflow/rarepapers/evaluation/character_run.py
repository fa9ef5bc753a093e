"""Evaluation of a run of a character model on two languages: both checkpoints and its observations."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rarepapers.core.files import read_arrays
from rarepapers.evaluation.characters import Scores, evaluate_checkpoint, score_languages
from rarepapers.evaluation.metric_rows import Found, row
from rarepapers.evaluation.temperature import FITTED, temperature_rows
from rarepapers.metrics import gradient_ratios as gradients
from rarepapers.models import CHECKPOINTS
from rarepapers.models.building import load_model
from raretok.metrics.perplexity import TEMPERATURES, best_temperature, from_mean

RATIOS = {
    "ratio_of_average": gradients.ratio_of_average,
    "average_of_ratio": gradients.average_of_ratio,
    "average_of_ratio_dropped": gradients.average_of_ratio_dropped,
}


def evaluate_run(
    folder: Path,
    model_settings: Mapping,
    corpus,
    settings: Mapping,
    low_resource_probability: float | None = None,
    device: str = "cpu",
) -> Found:
    """All metrics and arrays of the run in `folder`, as listed in docs/results.md.

    corpus: a `data.prepared_corpus.Corpus` of kind characters. settings: a `config_types.CharacterEvaluation`.
    low_resource_probability: share of the low-resource language in training; only `fit_temperature` needs it. Raises
    UserError for a text shorter than a batch.
    """
    symbols = list(corpus.symbols)
    ids = np.asarray(corpus.tokens("valid"), dtype=np.int64)
    found = Found()
    found.arrays |= {
        "temperatures": TEMPERATURES,
        "counts": np.asarray(corpus.counts, dtype=np.int64),
        "symbols": np.array([ord(symbol) for symbol in symbols], dtype=np.int32),
    }
    for checkpoint, file in CHECKPOINTS.items():
        model = load_model(folder / file, model_settings, vocabulary=2 * len(symbols), device=device)
        context = model_settings["context"]
        scored = score_languages(model, ids, len(symbols), context, settings, device)
        more = evaluate_checkpoint(model, ids, symbols, found.arrays["counts"], context, settings, checkpoint, scored)
        found.add((more.rows, more.arrays))
        if settings.get("fit_temperature") and checkpoint == "best":
            found.rows += fitted_rows(model, corpus, context, settings, low_resource_probability, device, scored)
    found.add(gradient_ratios(folder / "observations.npz", len(symbols)))
    return found


def held_out(corpus) -> tuple[np.ndarray, np.ndarray]:
    """Validation and test text; without a test split, the two halves of the validation text."""
    valid = np.asarray(corpus.tokens("valid"), dtype=np.int64)
    if "test" in corpus.splits:
        return valid, np.asarray(corpus.tokens("test"), dtype=np.int64)
    return valid[: len(valid) // 2], valid[len(valid) // 2 :]


def fitted_rows(
    model,
    corpus,
    context: int,
    settings: Mapping,
    probability: float,
    device: str,
    scored: Mapping[str, Scores] | None = None,
) -> list[dict]:
    """Perplexities at the temperature fitted to the validation text, and Uniq of the test text.

    One temperature is fitted per model. The validation loss is the mean over both languages, weighted by their shares
    of the training text (`probability` for the low-resource one). Perplexities are given for each language, and for
    both with these weights; all are inf if no temperature gives a finite validation perplexity.
    scored: scores of the whole validation text, if they are known.
    """
    types, shares = len(corpus.symbols), {"HR": 1 - probability, "LR": probability}
    valid, text = held_out(corpus)
    if scored is None or "test" not in corpus.splits:
        scored = score_languages(model, valid, types, context, settings, device)
    curves = {group: scores.sweep / len(scores.nll) for group, scores in scored.items()}
    total, temperature = best_temperature(from_mean(mixed(curves, shares)))
    n = len(scored["HR"].nll)
    rows = temperature_rows(temperature, n, TEMPERATURES[0], TEMPERATURES[-1])
    rows.append(_fitted("total", "valid@best", total, n))
    found, number = {}, 0
    tested = score_languages(model, text, types, context, settings, device)
    for shift, (group, scores) in zip((0, types), tested.items(), strict=True):
        number = len(scores.nll)
        fits = temperature == TEMPERATURES
        found[group] = scores.sweep[fits] / number if fits.any() else np.array([np.inf])
        rows.append(_fitted(group, "test@best", from_mean(found[group][0]), number))
        own = np.unique(scores.predicted)
        own = own[(own >= shift) & (own < shift + types)]
        fields = {"groups": "language", "predictions": "own_language", "checkpoint": "best"}
        rows.append(row("uniq", group, "test@best", len(own), number, **fields))
    return [*rows, _fitted("total", "test@best", from_mean(mixed(found, shares)[0]), number)]


def mixed(by_language: Mapping[str, np.ndarray], shares: Mapping[str, float]) -> np.ndarray:
    """Mean losses of a text in several languages, weighted by `shares`; a language without a share is left out."""
    return sum(share * by_language[name] for name, share in shares.items() if share)


def _fitted(group: str, split: str, value: float, n: int) -> dict:
    return row(FITTED, group, split, value, n, groups="language", languages="as_in_training")


def gradient_ratios(path: Path, types: int) -> tuple[list[dict], dict[str, np.ndarray]]:
    """Rows (mean over LR tokens) and arrays (V) of the gradient norms in `path`; empty if not observed."""
    prefix = "gradient_norms."
    sums = {name.removeprefix(prefix): values for name, values in read_arrays(path).items() if name.startswith(prefix)}
    rows, arrays = [], {}
    if sums:
        for name, ratio in RATIOS.items():
            values = ratio(sums)
            mean, tokens = gradients.mean_over_tokens(values[types:])
            rows.append(row(name, "LR", "train", mean, tokens, steps=int(sums["steps"]), mean="tokens"))
            arrays[f"gradients.{name}"] = values
    return rows, arrays
