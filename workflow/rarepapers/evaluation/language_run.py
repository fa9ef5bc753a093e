"""Evaluation of a run of a language model: both checkpoints, snapshots and observations.

Cost for N test and M validation tokens, in tokens through the model's blocks and through its output layer:

    blocks          2 N + M for plain scores, N block / (block - window) for windowed ones (best checkpoint only), and
                    the continuations (generation.py)
    output layer    3 N + M, and one per continued token

Both are N less if the last checkpoint is the best. Fitting a temperature adds FIT_TOKENS to the blocks and about twelve
times as many to the output layer; perplexities at it add N + M softmaxes, and probabilities of groups as many. The
gradient that hidden vectors keep takes FIT_TOKENS of both. The rest is d x d algebra of the output matrix, and products
of rare types with all types.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from rarepapers.core.errors import UserError
from rarepapers.core.files import read_arrays
from rarepapers.data.codec import codec_of
from rarepapers.data.text.similarity_pairs import read_pairs
from rarepapers.evaluation import language
from rarepapers.evaluation.metric_rows import Found
from rarepapers.evaluation.queries import query_ids
from rarepapers.evaluation.snapshots import measure_snapshots
from rarepapers.metrics.neighbours import occurring
from rarepapers.models import CHECKPOINTS
from rarepapers.models.building import load_model
from raretok.frequency_groups import bounds
from raretok.metrics.group_statistics import Groups

# Observations that are copied unchanged for figures.
COPIED = ("rare_types.", "rare_alignment.", "divergence.", "output_bias.")


def evaluate_run(
    folder: Path,
    model_settings: Mapping,
    corpus,
    settings: Mapping,
    similarity_files: Mapping[str, Path],
    device: str = "cpu",
) -> Found:
    """All metrics and arrays of the run in `folder`, as listed in docs/results.md.

    corpus: a `prepared_corpus.Corpus` of kind language. settings: a `config_types.LanguageEvaluation`.
    similarity_files: the file of each set of word pairs. All settings are checked before the first forward
    pass; raises UserError.
    """
    groups = group_sets(settings, corpus)
    check_lengths(settings, corpus, model_settings["context"])
    pairs = {name: read_pairs(path) for name, path in similarity_files.items()}
    missing = sorted(set(settings["word_similarity"]) - set(pairs))
    if missing:
        raise UserError(
            f"evaluation.word_similarity names {missing[0]}, whose file is not given; add "
            f"--word-similarity {missing[0]}=PATH or take the set out of the settings"
        )
    codec = codec_of(corpus)
    queried(settings, corpus, groups[0])  # raises UserError for a wrong query
    found = of_corpus(corpus, groups)
    plain, previous = {}, None
    for checkpoint, file in CHECKPOINTS.items():
        model = load_model(folder / file, dict(model_settings), vocabulary=corpus.types, device=device)
        # If the last checkpoint is the best, which is common, its text is scored already.
        scored = plain["test"] if previous is not None and same_weights(model, previous) else None
        temperature = 1.0
        if checkpoint == "best" and settings.get("fit_temperature"):
            temperature = language.fitted_temperature(model, corpus, settings, device)
        weights = model.output_weight.detach().float().cpu().numpy().astype(np.float64)
        rows, plain = language.text_rows(model, corpus, groups, settings, checkpoint, device, scored, temperature)
        found.rows, previous = found.rows + rows, model
        found.add(matrix_rows(model.output_weight, weights, corpus, groups, settings, checkpoint))
        if checkpoint == "best":
            found.rows += language.similarity_rows(weights, corpus, codec, pairs)
            found.add(language.generated_rows(model, corpus, codec, model_settings["context"], settings, device))
            found.rows += language.kept_gradient_rows(model, corpus, groups[0], settings, device)
            found.arrays |= language.offset_arrays(plain, corpus, groups[0])
            if settings.get("fit_temperature"):
                found.rows += language.fitted_rows(temperature, plain, corpus, groups, settings)
    found.arrays |= measure_snapshots(folder / "snapshots.safetensors", groups[0])
    found.arrays |= observation_rows(folder / "observations.npz")
    return found


def of_corpus(corpus, groups: list[Groups]) -> Found:
    """What is known without a model: metrics of the data, and the arrays that figures need."""
    found = Found(language.data_rows(corpus, groups))
    found.arrays |= {
        "vocabulary": np.array(corpus.symbols),
        "counts": np.asarray(corpus.counts, dtype=np.int64),
        "bounds": np.array(groups[0].bounds, dtype=np.int64),
    }
    return found


def matrix_rows(
    matrix: torch.Tensor,
    weights: np.ndarray,
    corpus,
    groups: list[Groups],
    settings: Mapping,
    checkpoint: str,
) -> tuple[list[dict], dict[str, np.ndarray]]:
    """Metric rows and arrays computed from the output matrix, with neighbours for `best` only.

    matrix: W on the device, weights: the same (V x d, float64). corpus: its name, symbols, counts and special ids.
    """
    found = Found()
    found.add(language.weight_rows(weights, corpus.counts, groups, checkpoint))
    if checkpoint == "best":
        known, queries = queried(settings, corpus, groups[0])
        found.add(language.neighbour_rows(matrix, weights, groups[0], queries, known, settings))
    return found.rows, found.arrays


def queried(settings: Mapping, corpus, groups: Groups) -> tuple[np.ndarray, np.ndarray]:
    """Types that can be neighbours (V booleans), and the ids of the queries, which are among them."""
    known = occurring(corpus.counts, corpus.special)
    return known, query_ids(settings["queries"], corpus.symbols, known, groups.bounds[1], corpus.name)


def group_sets(settings: Mapping, corpus) -> list[Groups]:
    """The sets of groups in the settings, with bounds computed for this corpus."""
    sets = []
    for entry in settings["groups"]:
        rule = {key: value for key, value in entry.items() if key not in ("names", "suffix")}
        try:
            found = tuple(int(bound) for bound in bounds(rule, corpus.counts))
        except ValueError as error:
            raise UserError(str(error)) from None
        written = "+".join(f"{key}={language.listed(value)}" for key, value in rule.items())
        sets.append(Groups(tuple(entry["names"]), found, corpus.types, entry.get("suffix", ""), written))
    return sets


def check_lengths(settings: Mapping, corpus, context: int) -> None:
    """Raise UserError if the model's context or a split is too short for the settings."""
    if settings["block"] > context:
        raise UserError(
            f"evaluation.block is {settings['block']}, but the model reads {context} tokens (model.context); "
            "take a smaller block"
        )
    if settings["window"] >= settings["block"]:
        raise UserError(
            f"evaluation.window is {settings['window']}; it must be smaller than block, {settings['block']}"
        )
    for split in ("test", "valid"):
        if corpus.splits[split] < settings["block"]:
            raise UserError(
                f"the {split} split of corpus {corpus.name} has {corpus.splits[split]:,} tokens, fewer than one block "
                f"(evaluation.block: {settings['block']}); take a smaller block or a longer text"
            )
    prefixes = settings["prefixes"]
    if corpus.splits["test"] < prefixes["number"] + prefixes["length"] - 1:
        raise UserError(
            f"the test split of corpus {corpus.name} has {corpus.splits['test']:,} tokens, too few for "
            f"{prefixes['number']} prefixes of {prefixes['length']} (evaluation.prefixes); take fewer or a longer text"
        )


def same_weights(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    """Whether two models of one kind have equal weights."""
    others = second.state_dict()
    return all(torch.equal(tensor, others[name]) for name, tensor in first.state_dict().items())


def observation_rows(path: Path) -> dict[str, np.ndarray]:
    """Observations of rare types, predictions and output bias, unchanged."""
    return {name: values for name, values in read_arrays(path).items() if name.startswith(COPIED)}
