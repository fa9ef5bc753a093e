"""How language models are evaluated: an experiment's `evaluation`, checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from raretok.core.errors import UserError
from raretok.evaluation.settings_checks import check_groups, check_queries, known_keys, whole


@dataclass(frozen=True)
class Prefixes:
    """Greedy continuations: `number` prefixes of `length` tokens, each continued by `continuation` tokens.

    examples: how many of them are kept as text.
    """

    number: int = 64
    length: int = 50
    continuation: int = 100
    examples: int = 5

    def __post_init__(self):
        for name in ("number", "length", "continuation"):
            whole(f"prefixes.{name}", getattr(self, name), 1)
        whole("prefixes.examples", self.examples, 0)


@dataclass(frozen=True)
class LanguageSettings:
    """An experiment's `evaluation`, for a corpus of kind language.

    groups: sets of three groups, each {names, suffix (but for the first), and a rule of `data.groups`}; the first set
    is that of arrays and of numbers with one set. block: tokens read at a time, of which the first `window` are
    context only in the published perplexity. neighbours: k. queries: words whose neighbours are kept, or
    {rare: n} for n types of the rare group. word_similarity: names of sets of pairs (what their values mean is the
    workflow's; files come as arguments). fit_temperature: fit a temperature to the validation text, and measure both
    texts at it.
    """

    groups: tuple[dict, ...]
    block: int = 512
    window: int = 400
    prefixes: Prefixes = field(default_factory=Prefixes)
    neighbours: int = 5
    queries: tuple[str, ...] | dict = ()
    word_similarity: Mapping = field(default_factory=dict)
    fit_temperature: bool = False

    def __post_init__(self):
        whole("block", self.block, 1)
        whole("window", self.window, 0)
        whole("neighbours", self.neighbours, 1)
        if self.window >= self.block:
            raise UserError(f"evaluation.window is {self.window}; it must be smaller than block, {self.block}")
        check_groups(self.groups)
        check_queries(self.queries)
        if not isinstance(self.word_similarity, Mapping):
            raise UserError("evaluation.word_similarity must map names of sets of word pairs to files")


def parse(settings: Mapping) -> LanguageSettings:
    """The settings in a JSON object; UserError for an unknown or missing key, or a wrong value."""
    options = known_keys(settings, LanguageSettings, "evaluation")
    for key in ("groups", "queries"):
        if isinstance(options.get(key), list):
            options[key] = tuple(options[key])
    options.setdefault("groups", None)
    if "prefixes" in options:
        options["prefixes"] = Prefixes(**known_keys(options["prefixes"], Prefixes, "evaluation.prefixes"))
    return LanguageSettings(**options)
