"""How language models are evaluated: an experiment's `evaluation`, checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from raretok.errors import UserError


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
            _whole(f"prefixes.{name}", getattr(self, name), 1)
        _whole("prefixes.examples", self.examples, 0)


@dataclass(frozen=True)
class LanguageSettings:
    """An experiment's `evaluation`, for a corpus of kind language.

    groups: sets of three groups, each {names, suffix (but for the first), and a rule of `data.groups`}; the first set
    is that of arrays and of numbers with one set. block: tokens read at a time, of which the first `window` are
    context only in the published perplexity. neighbours: k. queries: words whose neighbours are kept, or
    {rare: n} for n types of the rare group. word_similarity: names of sets of pairs (what their values mean is the
    workflow's; files come as arguments).
    """

    groups: tuple[dict, ...]
    block: int = 512
    window: int = 400
    prefixes: Prefixes = field(default_factory=Prefixes)
    neighbours: int = 5
    queries: tuple[str, ...] | dict = ()
    word_similarity: Mapping = field(default_factory=dict)

    def __post_init__(self):
        _whole("block", self.block, 1)
        _whole("window", self.window, 0)
        _whole("neighbours", self.neighbours, 1)
        if self.window >= self.block:
            raise UserError(f"evaluation.window is {self.window}; it must be smaller than block, {self.block}")
        if not self.groups:
            raise UserError("evaluation.groups is empty; it must hold at least one set of three groups")
        for group in self.groups:
            names = group.get("names") if isinstance(group, Mapping) else None
            if not isinstance(names, (list, tuple)) or len(names) != 3:
                raise UserError(f"evaluation.groups holds {group!r}; each set needs `names`, a list of three")
        suffixes = [group.get("suffix", "") for group in self.groups]
        if suffixes[0] or len(set(suffixes)) < len(suffixes):
            raise UserError(
                f"evaluation.groups has the suffixes {suffixes}; the first must be empty and each further one new"
            )
        if isinstance(self.queries, Mapping):
            if set(self.queries) != {"rare"}:
                raise UserError(f"evaluation.queries is {self.queries!r}; it must be a list of words or {{rare: n}}")
            _whole("queries.rare", self.queries["rare"], 1)
        elif isinstance(self.queries, str) or not all(isinstance(word, str) for word in self.queries):
            raise UserError(f"evaluation.queries is {self.queries!r}; it must be a list of words or {{rare: n}}")
        if not isinstance(self.word_similarity, Mapping):
            raise UserError("evaluation.word_similarity must map names of sets of word pairs to files")


def parse(settings: Mapping) -> LanguageSettings:
    """The settings in a JSON object; UserError for an unknown or missing key, or a wrong value."""
    options = _known(settings, LanguageSettings, "evaluation")
    for key in ("groups", "queries"):
        if isinstance(options.get(key), list):
            options[key] = tuple(options[key])
    if not isinstance(options.get("groups"), tuple):
        raise UserError("evaluation.groups is missing or no list; it must hold at least one set of three groups")
    if "queries" in options and not isinstance(options["queries"], (tuple, dict)):
        raise UserError(f"evaluation.queries is {options['queries']!r}; it must be a list of words or {{rare: n}}")
    if "prefixes" in options:
        options["prefixes"] = Prefixes(**_known(options["prefixes"], Prefixes, "evaluation.prefixes"))
    return LanguageSettings(**options)


def _known(settings: object, kind: type, name: str) -> dict:
    """`settings` as keywords of a dataclass."""
    if not isinstance(settings, Mapping):
        raise UserError(f"{name} is {settings!r}; it must be a mapping")
    known = [one.name for one in fields(kind)]
    for key in settings:
        if key not in known:
            raise UserError(f"{name}.{key} does not exist; {name} has {', '.join(known)}")
    return dict(settings)


def _whole(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UserError(f"evaluation.{name} is {value!r}; it must be a whole number of at least {least}")
