"""Evaluation settings of an experiment, as in its config (`experiments.config_types`)."""

from rarepapers.core.errors import UserError
from rarepapers.core.files import parse_json
from rarepapers.core.type_check import validate
from rarepapers.experiments.config_types import CharacterEvaluation, LanguageEvaluation, TranslationEvaluation


class TranslationSettings(TranslationEvaluation, total=False):
    """An experiment's settings, with the COMET model of config.yaml."""

    comet: str


SETTINGS = {"characters": CharacterEvaluation, "language": LanguageEvaluation, "translation": TranslationSettings}


def read_settings(text: str, kind: str) -> dict:
    """The evaluation settings in `text` (JSON) for a corpus of a kind; raises UserError for anything else."""
    source = "--settings is not an experiment's evaluation"
    try:
        settings = parse_json(text, "--settings")
    except ValueError as error:
        raise UserError(f"{source}: {error}") from None
    validate(settings, SETTINGS[kind], source)
    return settings
