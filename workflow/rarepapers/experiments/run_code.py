"""Identity of a run's result: digests of the code that trains and measures it, and the key of its settings."""

from rarepapers.core.code_digest import code_of, model_module, tokenizer_module
from rarepapers.core.config_files import canonical_json

# Modules that train and that measure a run, by kind of corpus.
TASKS = {
    "characters": "rarepapers.training.tasks",
    "language": "rarepapers.training.tasks",
    "translation": "rarepapers.training.translation_task",
}
MEASURES = {
    "characters": "rarepapers.evaluation.character_run",
    "language": "rarepapers.evaluation.language_run",
    "translation": "rarepapers.evaluation.translation_run",
}


def training_code(settings: dict, kind: str) -> str:
    """Digest of the code that trains a run with these settings on a corpus of this kind."""
    # Imported here because measuring a run loads this module but needs no method.
    from rarepapers.experiments.methods import part_names

    methods = (f"raretok.methods.{name}" for name in part_names(settings["method"]))
    # Only translation runs decode text (for BLEU) during training.
    tokenizer = tokenizer_of(settings) if kind == "translation" else []
    model = model_module(settings["model"]["name"])
    return code_of("rarepapers.training.train_command", TASKS[kind], model, *tokenizer, *methods)


def is_copy(training: dict) -> bool:
    """Whether a training's record is of files copied from another run with the same settings."""
    return "same_as" in training


def evaluation_code(settings: dict, kind: str) -> str:
    """Digest of the code that measures a run with these training settings on a corpus of this kind."""
    model = model_module(settings["model"]["name"])
    return code_of("rarepapers.evaluation.evaluate_command", MEASURES[kind], model, *tokenizer_of(settings))


def tokenizer_of(settings: dict) -> list[str]:
    """The module of the tokenizer of a run's corpus, as a list; empty for a corpus of characters."""
    tokenizer = settings.get("corpus", {}).get("definition", {}).get("tokenizer")
    return [tokenizer_module(tokenizer["name"])] if tokenizer else []


def training_key(settings: dict) -> str:
    """Canonical JSON of what decides a run's weights: without observations, and without `rare` if there is no gate."""
    method = {key: value for key, value in settings["method"].items() if key != "observe"}
    unused = () if "gate" in method else ("rare",)
    training = {key: value for key, value in settings["training"].items() if key not in unused}
    return canonical_json(settings | {"method": method, "training": training})


def observations_of(settings: dict) -> frozenset[str]:
    """The observations of a run, each as canonical JSON."""
    return frozenset(map(canonical_json, settings["method"].get("observe", [])))
