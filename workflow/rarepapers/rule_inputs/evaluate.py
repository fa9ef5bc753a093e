"""Inputs and params of the rules `evaluate`, `compare` and `measure_gpt2`."""

import json
from collections import defaultdict
from functools import lru_cache

from rarepapers.core.errors import UserError
from rarepapers.experiments.run_table import Run, RunTable
from rarepapers.experiments.trained_runs import code_that_measures
from rarepapers.rule_inputs import train
from rarepapers.rule_inputs.per_job import per_job
from rarepapers.rule_inputs.train import run_of


@per_job
def code(table: RunTable, wildcards) -> str:
    """Digest of the code that measures a run."""
    return code_that_measures(run_of(table, wildcards))


@per_job
def settings(table: RunTable, wildcards) -> str:
    """Canonical JSON of a run's evaluation settings."""
    return table.evaluation(wildcards.experiment)


@per_job
def similarity(table: RunTable, wildcards) -> list[str]:
    """The word similarity sets of a run's evaluation, as NAME=PATH."""
    sets = json.loads(settings(table, wildcards)).get("word_similarity", {})
    return [f"{name}=resources/{file}" for name, file in sets.items()]


@per_job
def similarity_files(table: RunTable, wildcards) -> list[str]:
    """The files of those sets, each once."""
    return list(dict.fromkeys(pair.partition("=")[2] for pair in similarity(table, wildcards)))


@per_job
def links(table: RunTable, wildcards) -> list[str]:
    """The word links of a translation run's corpus, if its evaluation needs them."""
    if not json.loads(settings(table, wildcards)).get("alignment"):
        return []
    return [f"{table.results}/alignments/{run_of(table, wildcards).settings['corpus']['name']}/train.links"]


# Comparison of translations; wildcards: experiment, seed.


@lru_cache(maxsize=4)
def _runs_to_compare(table: RunTable) -> dict[tuple[str, str], list[Run]]:
    found = defaultdict(list)
    for run in table.runs.values():
        found[run.experiment, str(run.seed)].append(run)
    return dict(found)


def translating(table: RunTable, experiment: str, seed: int | str) -> list[Run]:
    """The runs of an experiment with one seed, one per method; the first is the baseline."""
    return _runs_to_compare(table).get((experiment, str(seed)), [])


@per_job
def hypotheses(table: RunTable, wildcards) -> list[str]:
    """The translations of every method."""
    return [system.partition("=")[2] for system in systems(table, wildcards)]


@per_job
def systems(table: RunTable, wildcards) -> list[str]:
    """Each method with its translations, as METHOD=PATH."""
    runs = translating(table, wildcards.experiment, wildcards.seed)
    return [f"{run.method}={table.folder(run)}/hypotheses.json" for run in runs]


@per_job
def references(table: RunTable, wildcards) -> str:
    """The manifest of the corpus that they translated, which has the references."""
    first, *_ = translating(table, wildcards.experiment, wildcards.seed)
    return train.manifest(table, first)


@per_job
def files_of_references(table: RunTable, wildcards) -> list[str]:
    """The files beside that manifest."""
    first, *_ = translating(table, wildcards.experiment, wildcards.seed)
    return train.corpus_files(table, first)


# GPT-2; wildcard: repository.


@per_job
def gpt2(table: RunTable, wildcards) -> dict:
    """Name, width, vocabulary size and percentile index of a GPT-2 model; raises UserError if no paper measures it."""
    for paper in table.papers.values():
        entry = paper.get("gpt2", {"models": {}})
        for name, model in entry["models"].items():
            if model["repository"] == wildcards.repository:
                of_all = {key: entry[key] for key in ("vocabulary", "percentile_index")}
                return {"name": name, "width": model["width"]} | of_all
    raise UserError(f"no file in config/papers has {wildcards.repository!r} under gpt2.models")


@per_job
def gpt2_checkpoint(table: RunTable, wildcards) -> list[str]:
    """Pre-trained weights of a GPT-2 model, or nothing if the config skips them."""
    place = table.config["gpt2_weights"]
    if place == "skip":
        return []
    return [f"{'resources' if place == 'hub' else place}/{wildcards.repository}/model.safetensors"]
