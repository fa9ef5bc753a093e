"""Evaluation of a run of a language model: both checkpoints, snapshots and observations.

Cost, in tokens through the blocks of the model, for N test and M validation tokens: 2 N + M plain, block / (block -
window) x N windowed (best checkpoint alone), and those of the continuations (generation.py). Through the output layer:
3 N + M, and one a continued token. Both N less where the last checkpoint is the best. The rest is d x d algebra of the
output matrix, and rare types against all types.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from raretok.data.groups import bounds
from raretok.data.tokenizers import codec_of
from raretok.data.word_similarity import read_pairs
from raretok.errors import UserError
from raretok.evaluation import language
from raretok.evaluation.grouping import Groups
from raretok.evaluation.language_settings import LanguageSettings
from raretok.evaluation.language_settings import parse as parse
from raretok.evaluation.neighbours import occurring
from raretok.evaluation.queries import query_ids
from raretok.evaluation.snapshots import measure_snapshots
from raretok.models import load_model

CHECKPOINTS = {"best": "model.safetensors", "last": "last.safetensors"}
# Observations that figures show as training wrote them.
COPIED = ("rare_types.", "rare_alignment.", "divergence.", "output_bias.")


def evaluate_run(
    folder: Path,
    model_settings: Mapping,
    corpus,
    settings: LanguageSettings,
    similarity_files: Mapping[str, Path],
    device: str = "cpu",
) -> tuple[list[dict], dict[str, np.ndarray]]:
    """All metric rows and arrays of the run in `folder`, as docs/architecture.md names them.

    corpus: a `data.corpora.Corpus` of kind language. similarity_files: the file of each set of word pairs.
    Everything a user can have got wrong is found before the first forward pass; raises UserError.
    """
    groups = group_sets(settings, corpus)
    check_lengths(settings, corpus, model_settings["context"])
    pairs = {name: read_pairs(path) for name, path in similarity_files.items()}
    missing = sorted(set(settings.word_similarity) - set(pairs))
    if missing:
        raise UserError(
            f"evaluation.word_similarity names {missing[0]}, whose file is not given; add "
            f"--word-similarity {missing[0]}=PATH or take the set out of the settings"
        )
    codec = codec_of(corpus)
    known = occurring(corpus.counts, corpus.special)
    queries = query_ids(settings.queries, corpus.symbols, known, groups[0].bounds[1], corpus.name)
    rows = language.data_rows(corpus, groups)
    arrays = {
        "vocabulary": np.array(corpus.symbols),
        "counts": np.asarray(corpus.counts, dtype=np.int64),
        "bounds": np.array(groups[0].bounds, dtype=np.int64),
    }
    plain, previous = None, None
    for checkpoint, file in CHECKPOINTS.items():
        model = load_model(folder / file, dict(model_settings), vocabulary=corpus.types, device=device)
        # Often the last checkpoint is the best: then its text is scored already.
        scored = plain if previous is not None and same_weights(model, previous) else None
        weights = model.output_weight.detach().float().cpu().numpy().astype(np.float64)
        more_rows, plain = language.text_rows(model, corpus, groups, settings, checkpoint, device, scored)
        rows, previous = rows + more_rows, model
        more_rows, more_arrays = language.weight_rows(weights, groups, checkpoint)
        rows, arrays = rows + more_rows, arrays | more_arrays
        if checkpoint == "best":
            rows += language.similarity_rows(weights, corpus, codec, pairs)
            more_rows, more_arrays = language.neighbour_rows(
                model.output_weight, weights, groups[0], queries, known, settings
            )
            rows, arrays = rows + more_rows, arrays | more_arrays
            more_rows, more_arrays = language.generated_rows(
                model, corpus, codec, model_settings["context"], settings, device
            )
            rows, arrays = rows + more_rows, arrays | more_arrays
            if settings.fit_temperature:
                rows += language.fitted_rows(model, corpus, groups, settings, device)
    arrays |= measure_snapshots(folder / "snapshots.safetensors", groups[0])
    return rows, arrays | observed(folder / "observations.npz")


def group_sets(settings: LanguageSettings, corpus) -> list[Groups]:
    """The settings' sets of groups with the bounds that their rules have for this corpus."""
    sets = []
    for entry in settings.groups:
        rule = {key: value for key, value in entry.items() if key not in ("names", "suffix")}
        found = tuple(int(bound) for bound in bounds(rule, corpus.counts))
        written = "+".join(f"{key}={language.listed(value)}" for key, value in rule.items())
        sets.append(Groups(tuple(entry["names"]), found, corpus.types, entry.get("suffix", ""), written))
    return sets


def check_lengths(settings: LanguageSettings, corpus, context: int) -> None:
    """UserError where the model or the test split is too short for what the settings ask."""
    if settings.block > context:
        raise UserError(
            f"evaluation.block is {settings.block}, but the model reads {context} tokens (model.context); "
            "take a smaller block"
        )
    for split in ("test", "valid"):
        if corpus.splits[split] < settings.block:
            raise UserError(
                f"the {split} split of corpus {corpus.name} has {corpus.splits[split]:,} tokens, fewer than one block "
                f"(evaluation.block: {settings.block}); take a smaller block or a longer text"
            )
    prefixes = settings.prefixes
    if corpus.splits["test"] < prefixes.number + prefixes.length - 1:
        raise UserError(
            f"the test split of corpus {corpus.name} has {corpus.splits['test']:,} tokens, too few for "
            f"{prefixes.number} prefixes of {prefixes.length} (evaluation.prefixes); take fewer or a longer text"
        )


def same_weights(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    """Whether two models of one kind have equal weights."""
    others = second.state_dict()
    return all(torch.equal(tensor, others[name]) for name, tensor in first.state_dict().items())


def observed(path: Path) -> dict[str, np.ndarray]:
    """What training observed of rare types, of predictions and of the output bias, as it wrote it."""
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files if name.startswith(COPIED)}
