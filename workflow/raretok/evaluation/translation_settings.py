"""How translation models are evaluated: an experiment's `evaluation`, checked."""

from collections.abc import Mapping
from dataclasses import dataclass

from raretok.core.errors import UserError
from raretok.evaluation.settings_checks import check_groups, check_queries, known_keys, number, whole


@dataclass(frozen=True)
class TranslationSettings:
    """An experiment's `evaluation`, for a corpus of kind translation.

    groups, queries, neighbours: as `language_settings.LanguageSettings` has them; groups are of target-side counts.
    beam: hypotheses kept a sentence, 1 is greedy. length_exponent: a hypothesis's log probability is divided by its
    length to this power. tokenised_bleu: BLEU of Moses tokens with compounds split beside that of plain text.
    alignment: AlignSim, which needs the corpus's links. alc: updates over which the area under the learning curve is
    taken, beside the whole training's. calibration_bins: of unigram log frequency; 0: no calibration. f1_buckets:
    least training counts of buckets of words; empty: no F1. domains: translate the corpus's other domains too.
    fit_temperature: fit a temperature to the validation text, measure both texts at it, and count the types that the
    translations use.
    """

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
    fit_temperature: bool = False

    def __post_init__(self):
        check_groups(self.groups)
        check_queries(self.queries)
        whole("beam", self.beam, 1)
        whole("neighbours", self.neighbours, 1)
        whole("calibration_bins", self.calibration_bins, 0)
        number("length_exponent", self.length_exponent, 0)
        for name in ("tokenised_bleu", "alignment", "domains", "fit_temperature"):
            if not isinstance(getattr(self, name), bool):
                raise UserError(f"evaluation.{name} is {getattr(self, name)!r}; it must be true or false")
        for name, least in (("alc", 1), ("f1_buckets", 0)):
            values = getattr(self, name)
            if not isinstance(values, tuple):
                raise UserError(f"evaluation.{name} is {values!r}; it must be a list of whole numbers")
            for value in values:
                whole(f"{name} holds {value!r}, which", value, least)
            if list(values) != sorted(set(values)):
                raise UserError(f"evaluation.{name} is {list(values)}; its numbers must rise")


def parse(settings: Mapping) -> TranslationSettings:
    """The settings in a JSON object; UserError for an unknown or missing key, or a wrong value."""
    options = known_keys(settings, TranslationSettings, "evaluation")
    for key in ("groups", "queries", "alc", "f1_buckets"):
        if isinstance(options.get(key), list):
            options[key] = tuple(options[key])
    options.setdefault("groups", None)
    return TranslationSettings(**options)
