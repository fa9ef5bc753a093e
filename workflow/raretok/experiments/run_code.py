"""What decides the result of a run: the code that trains it and that measures it, as digests, and its settings."""

from raretok.core.code_digest import code_of, model_module, tokenizer_module
from raretok.core.config_files import canonical_json

# By the kind of corpus: what trains on it, and what measures a run.
TASKS = {
    "characters": "raretok.training.tasks",
    "language": "raretok.training.tasks",
    "translation": "raretok.training.translation_task",
}
MEASURES = {
    "characters": "raretok.evaluation.character_run",
    "language": "raretok.evaluation.language_run",
    "translation": "raretok.evaluation.translation_run",
}


def training_code(settings: dict, kind: str) -> str:
    """Digest of the code that trains a run with these settings on a corpus of this kind."""
    # Here, since what measures a run loads this module, and needs no method.
    from raretok.methods import part_names

    methods = (f"raretok.methods.{name}" for name in part_names(settings["method"]))
    # Only translations are measured as text while they are trained.
    tokenizer = tokenizer_of(settings) if kind == "translation" else []
    return code_of("raretok.training.loop", TASKS[kind], model_module(settings["model"]["name"]), *tokenizer, *methods)


def evaluation_code(settings: dict, kind: str) -> str:
    """Digest of the code that measures a run with these settings (of its training), on a corpus of this kind."""
    model = model_module(settings["model"]["name"])
    return code_of("raretok.evaluation.evaluate_command", MEASURES[kind], model, *tokenizer_of(settings))


def tokenizer_of(settings: dict) -> list[str]:
    """The module of the tokenizer of a run's corpus; none of a corpus of characters."""
    tokenizer = settings.get("corpus", {}).get("definition", {}).get("tokenizer")
    return [tokenizer_module(tokenizer["name"])] if tokenizer else []


def training_key(settings: dict) -> str:
    """What decides a run's weights, as canonical JSON: not what is observed, nor what counts as rare without a gate."""
    method = {key: value for key, value in settings["method"].items() if key != "observe"}
    unused = () if "gate" in method else ("rare",)
    training = {key: value for key, value in settings["training"].items() if key not in unused}
    return canonical_json(settings | {"method": method, "training": training})


def observations_of(settings: dict) -> frozenset[str]:
    """What is observed along a run's training."""
    return frozenset(map(canonical_json, settings["method"].get("observe", [])))
