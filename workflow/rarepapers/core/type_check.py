"""Config types as annotations, and their checks: a wrong value is reported in one sentence with its key.

Config values stay as YAML returns them, so a mapping with known keys is a `TypedDict`. `Annotated` adds a `Limit`, or a
description of the allowed values.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from rarepapers.core.errors import UserError

# Returns the mistake in a value at a key (`a.b.0`), or None.
Check = Callable[[Any, str], str | None]
SCALARS = {str: "text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}
# JSON Schema keywords: the test of a bound, and its description.
LIMITS = {
    "minimum": (lambda value, bound: value >= bound, "be at least {}"),
    "exclusiveMinimum": (lambda value, bound: value > bound, "be above {}"),
    "maximum": (lambda value, bound: value <= bound, "be at most {}"),
    "exclusiveMaximum": (lambda value, bound: value < bound, "be below {}"),
    "multipleOf": (lambda value, bound: value % bound == 0, "be a multiple of {}"),
    "pattern": (lambda value, bound: re.search(bound, value), "match {}"),
    "minItems": (lambda value, bound: len(value) >= bound, "have {} or more entries"),
    "maxItems": (lambda value, bound: len(value) <= bound, "have {} or fewer entries"),
    "uniqueItems": (lambda value, _: len(set(map(repr, value))) == len(value), "have no duplicate entries"),
    "minProperties": (lambda value, bound: len(value) >= bound, "have {} or more keys"),
    "required": (lambda value, names: value.keys() >= set(names), "have the keys {}"),
}


@dataclass(frozen=True)
class Limit:
    """A keyword of LIMITS with its bound."""

    keyword: str
    bound: object

    @property
    def words(self) -> str:
        """Description of the requirement."""
        bound = ", ".join(self.bound) if isinstance(self.bound, tuple) else self.bound
        return LIMITS[self.keyword][1].format(bound)


# In `Annotated`: any key may be missing, because the mapping overrides keys of a complete one.
PARTIAL = object()
Positive = Annotated[int, Limit("minimum", 1)]
Count = Annotated[int, Limit("minimum", 0)]
AboveZero = Annotated[float, Limit("exclusiveMinimum", 0)]
NotNegative = Annotated[float, Limit("minimum", 0)]
Share = Annotated[AboveZero, Limit("exclusiveMaximum", 1)]
Text = Annotated[str, Limit("pattern", "."), "text that is not empty"]
# A component of paths.
Name = Annotated[str, Limit("pattern", r"^[A-Za-z0-9][A-Za-z0-9_.+-]*\Z"), "letters and digits, then also _ . + -"]


def each(kind: object, *names: str, needed: tuple[str, ...] | None = None) -> object:
    """A mapping from these keys to values of one type; `needed`: the required keys, by default all."""
    return Annotated[dict[Literal[names], kind], Limit("required", names if needed is None else needed)]


def keys(one_of: tuple[str, ...] = (), others: bool = False, **needs: list[str]) -> Callable[[type], type]:
    """Decorator of a TypedDict that adds rules for its keys.

    one_of: exactly one of these must be given. others: unknown keys are allowed. needs: for a key, those it requires.
    """

    def mark(kind: type) -> type:
        kind.one_of, kind.others, kind.needs = one_of, others, needs
        return kind

    return mark


def validate(value: object, kind: object, source: str) -> None:
    """Check `value`, read from `source`; UserError names the first key whose value is wrong."""
    mistake = check_of(kind)(value, "")
    if mistake:
        raise UserError(f"{source}: {mistake}")


@cache
def fields_of(kind: object) -> dict[str, tuple[object, bool]]:
    """The keys of a mapping (a TypedDict or `each`) with their types and whether they are required."""
    if not is_mapping(kind):
        names, one = get_args(bare(kind))
        return dict.fromkeys(get_args(names), (one, True))
    hints = get_type_hints(kind, include_extras=True).items()
    plain = {name: get_args(one)[0] if get_origin(one) in (Required, NotRequired) else one for name, one in hints}
    return {name: (one, name in kind.__required_keys__) for name, one in plain.items()}


def is_mapping(kind: object) -> bool:
    """Whether a type is a TypedDict."""
    return hasattr(kind, "__required_keys__")


def bare(kind: object) -> object:
    """A type without its `Annotated` notes."""
    return bare(get_args(kind)[0]) if get_origin(kind) is Annotated else kind


@cache
def check_of(kind: object, partial: bool = False) -> Check:
    """The check for a type. partial: keys of mappings may be missing."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _limited(check_of(parts[0], partial or PARTIAL in parts), parts[1:])
    if origin in (Union, UnionType):
        return _union(parts, partial)
    if is_mapping(kind):
        return _mapping(kind, partial)
    if origin is Literal:
        words = f"can be {', '.join(map(str, parts))}"
    else:
        scalar = f"must be {SCALARS.get(kind)}"
        words = {list: "must be a list, in brackets", dict: "must be a mapping"}.get(origin, scalar)
    inner = [check_of(part, partial) for part in parts] if origin in (list, dict) else []
    fits = _is_a(kind)

    def check(value, key):
        if not fits(value):
            return _wrong(value, key, words)
        if origin is list:
            return _first(inner[0](entry, _inside(key, place)) for place, entry in enumerate(value))
        if origin is dict:
            return _first(
                inner[0](name, f"a key of {key or 'the file'}") or inner[1](one, _inside(key, name))
                for name, one in value.items()
            )
        return None

    return check


@cache
def _is_a(kind: object) -> Callable[[object], bool]:
    """The test whether a value has the Python type of a config type."""
    kind = bare(kind)
    if get_origin(kind) is Literal:
        allowed = get_args(kind)
        return lambda value: value in allowed
    kind = dict if is_mapping(kind) else get_origin(kind) or kind
    plain = (int, float) if kind is float else kind
    if kind is float:
        return lambda value: isinstance(value, plain) and not isinstance(value, bool) and math.isfinite(value)
    # In Python, bool is a subclass of int.
    if kind in (bool, object):
        return lambda value: isinstance(value, plain)
    return lambda value: isinstance(value, plain) and not isinstance(value, bool)


def _wrong(value: object, key: str, words: str) -> str:
    shown = repr(value)
    return f"{key or 'the file'} is {shown if len(shown) <= 80 else shown[:77] + '...'}; it {words}"


def _inside(key: str, name: object) -> str:
    return f"{key}.{name}" if key else str(name)


def _first(mistakes: Iterable[str | None]) -> str | None:
    return next(filter(None, mistakes), None)


def _limited(inner: Check, notes: tuple) -> Check:
    limits = [(LIMITS[note.keyword][0], note) for note in notes if isinstance(note, Limit)]
    said = next((f"can be {note}" for note in notes if isinstance(note, str)), None)

    def check(value, key):
        mistake = inner(value, key)
        if not mistake:
            broken = (limit.words for keeps, limit in limits if not keeps(value, limit.bound))
            mistake = next((_wrong(value, key, f"must {words}") for words in broken), None)
        return _wrong(value, key, said) if mistake and said else mistake

    return check


def _union(parts: tuple, partial: bool) -> Check:
    checks, plain = {part: check_of(part, partial) for part in parts}, [bare(part) for part in parts]
    words = dict.fromkeys(
        ", ".join(get_args(one))
        if get_origin(one) is Literal
        else SCALARS.get(one) or ("a list" if get_origin(one) is list else "a mapping")
        for one in plain
    )

    def check(value, key):
        fitting = [part for part in parts if _is_a(part)(value)]
        mistakes = [checks[part](value, key) for part in fitting]
        if None in mistakes:
            return None
        if len(fitting) < 2:
            return mistakes[0] if mistakes else _wrong(value, key, f"must be {' or '.join(words)}")
        # The intended type: its literal values match, and it has most of the keys.
        tags = [{n: one for n, (one, _) in fields_of(part).items() if get_origin(one) is Literal} for part in fitting]
        meant = [n for n, own in enumerate(tags) if all(_is_a(own[tag])(value[tag]) for tag in own if tag in value)]
        if meant:
            return mistakes[min(meant, key=lambda n: len(value.keys() - fields_of(fitting[n]).keys()))]
        tag = next(tag for tag in tags[0] if tag in value)
        known = ", ".join(name for own in tags for name in get_args(own[tag]))
        return _wrong(value[tag], _inside(key, tag), f"can be {known}")

    return check


def _mapping(kind: type, partial: bool) -> Check:
    checks = {name: check_of(hint, partial) for name, (hint, _) in fields_of(kind).items()}
    needed = [name for name, (_, is_needed) in fields_of(kind).items() if is_needed and not partial]
    either = () if partial else getattr(kind, "one_of", ())
    needs = [(one, other) for one, others in getattr(kind, "needs", {}).items() for other in others]

    def check(value, key):
        if not isinstance(value, dict):
            return _wrong(value, key, "must be a mapping")
        unknown = [_inside(key, name) for name in value if name not in checks]
        if unknown and not getattr(kind, "others", False):
            return f"unknown key {', '.join(unknown)}; known here: {', '.join(checks)}"
        given = [name for name in either if name in value]
        missing = [_inside(key, name) for name in needed if name not in value][:1]
        missing = missing or [_inside(key, name) for name in either if not given]
        if missing:
            return f"key {' or '.join(missing)} is missing"
        if len(given) > 1:
            return f"{key or 'the file'}: {' and '.join(given)} exclude each other; keep one of them"
        alone = ((one, other) for one, other in needs if one in value and other not in value)
        mistake = next((f"key {_inside(key, other)} is missing; {one} requires it" for one, other in alone), None)
        return mistake or _first(one(value[name], _inside(key, name)) for name, one in checks.items() if name in value)

    return check
