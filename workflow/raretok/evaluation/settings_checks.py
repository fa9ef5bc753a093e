"""Checks that the settings of several kinds of evaluation share; a wrong value is a UserError that names its key."""

from collections.abc import Mapping
from dataclasses import fields

from raretok.core.errors import UserError


def known_keys(settings: object, kind: type, name: str) -> dict:
    """`settings` as keywords of a dataclass; UserError for a key that it lacks."""
    if not isinstance(settings, Mapping):
        raise UserError(f"{name} is {settings!r}; it must be a mapping")
    known = [one.name for one in fields(kind)]
    for key in settings:
        if key not in known:
            raise UserError(f"{name}.{key} does not exist; {name} has {', '.join(known)}")
    return dict(settings)


def whole(name: str, value: object, least: int) -> None:
    """A whole number of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UserError(f"evaluation.{name} is {value!r}; it must be a whole number of at least {least}")


def number(name: str, value: object, least: float) -> None:
    """A number of at least `least`."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= least:
        raise UserError(f"evaluation.{name} is {value!r}; it must be a number of at least {least}")


def check_groups(groups: object) -> None:
    """Sets of three groups: a tuple of mappings with `names` and, but for the first, a suffix of their own."""
    if not isinstance(groups, tuple):
        raise UserError("evaluation.groups is missing or no list; it must hold at least one set of three groups")
    if not groups:
        raise UserError("evaluation.groups is empty; it must hold at least one set of three groups")
    for group in groups:
        names = group.get("names") if isinstance(group, Mapping) else None
        if not isinstance(names, (list, tuple)) or len(names) != 3:
            raise UserError(f"evaluation.groups holds {group!r}; each set needs `names`, a list of three")
    suffixes = [group.get("suffix", "") for group in groups]
    if suffixes[0] or len(set(suffixes)) < len(suffixes):
        raise UserError(
            f"evaluation.groups has the suffixes {suffixes}; the first must be empty and each further one new"
        )


def check_queries(queries: object) -> None:
    """Words whose neighbours are kept: a tuple of them, or {rare: n}."""
    if isinstance(queries, Mapping):
        if set(queries) != {"rare"}:
            raise UserError(f"evaluation.queries is {queries!r}; it must be a list of words or {{rare: n}}")
        whole("queries.rare", queries["rare"], 1)
    elif not isinstance(queries, tuple) or not all(isinstance(word, str) for word in queries):
        raise UserError(f"evaluation.queries is {queries!r}; it must be a list of words or {{rare: n}}")
