"""Evaluation settings of an experiment, as described and checked by `experiments.config_types`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from raretok.core.errors import UserError


@dataclass(frozen=True)
class CharacterSettings:
    """Settings for corpora of kind characters."""

    batch_size: int = 12
    drop_incomplete: bool = True
    examples: int = 64
    neighbours: int = 3
    fit_temperature: bool = False


@dataclass(frozen=True)
class Prefixes:
    """Settings of greedy continuations."""

    number: int = 64
    length: int = 50
    continuation: int = 100
    examples: int = 5


@dataclass(frozen=True)
class LanguageSettings:
    """Settings for corpora of kind language."""

    groups: tuple[dict, ...]
    block: int = 512
    window: int = 400
    prefixes: Prefixes = field(default_factory=Prefixes)
    neighbours: int = 5
    queries: tuple[str, ...] | dict = ()
    word_similarity: Mapping = field(default_factory=dict)
    fit_temperature: bool = False


@dataclass(frozen=True)
class TranslationSettings:
    """Settings for corpora of kind translation."""

    groups: tuple[dict, ...]
    beam: int = 5
    length_exponent: float = 1.0
    tokenised_bleu: bool = False
    neighbours: int = 5
    queries: tuple[str, ...] | dict = ()
    alignment: bool = False
    alc: tuple[int, ...] = ()
    calibration_bins: int = 0
    f1_buckets: tuple[int, ...] = ()
    domains: bool = False
    comet: str | None = None
    fit_temperature: bool = False


SETTINGS = {"characters": CharacterSettings, "language": LanguageSettings, "translation": TranslationSettings}


def parse(options: Mapping, kind: str):
    """The settings for a corpus of a kind; raises UserError for an unknown or missing key."""
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    try:
        if "prefixes" in values:
            values["prefixes"] = Prefixes(**values["prefixes"])
        return SETTINGS[kind](**values)
    except TypeError as error:
        raise UserError(f"--settings is not an experiment's evaluation: {error}") from None
