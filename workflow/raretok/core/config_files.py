"""Reading and checking the config files: every mistake is one sentence with its file and key."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from raretok.core.errors import UserError

if TYPE_CHECKING:
    import jsonschema

# libyaml where PyYAML has it, as its wheels do: every start of Snakemake reads 30 files, ten times as fast with it.
SAFE_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path) -> dict:
    """The mapping in a YAML file.

    Raises UserError when it is missing, no YAML or no mapping, when a key is given twice, of which YAML would silently
    keep the second, and for a number that no run can have (.nan, .inf).
    """
    try:
        loader = SAFE_LOADER(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        _check_node(node, path)
        value = loader.construct_document(node) if node else None
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(value, dict):
        raise UserError(f"{path} must hold keys and values at its top level")
    return value


def _check_node(node: yaml.Node | None, path: Path) -> None:
    """UserError for a key that stands twice in one mapping, and for a number that is not finite."""
    waiting, seen = [node] if node else [], set()
    while waiting:
        current = waiting.pop()
        if id(current) in seen:  # an alias
            continue
        seen.add(id(current))
        line = current.start_mark.line + 1
        if isinstance(current, yaml.MappingNode):
            keys = [key.value for key, _ in current.value]
            twice = next((key for key in keys if keys.count(key) > 1), None)
            if twice is not None:
                raise UserError(f"{path} has the key {twice} twice in the mapping of line {line}; keep one of them")
            waiting += [part for pair in current.value for part in pair]
        elif isinstance(current, yaml.SequenceNode):
            waiting += current.value
        elif current.tag.endswith(":float") and current.value.lstrip("+-").lower() in (".inf", ".nan"):
            raise UserError(f"{path}, line {line}: {current.value} is not a number; write a finite one")


def validate(value: dict, schema_path: Path, source: str) -> None:
    """Check `value`, which came from `source`, against a JSON schema; UserError names the key that is wrong.

    Without jsonschema, on a machine that has torch and little else, nothing is checked; standard error says so once.
    """
    if not can_validate():
        return
    found = _validator(schema_path).iter_errors(value)
    errors = sorted(found, key=lambda error: len(error.absolute_path), reverse=True)
    if errors:
        raise UserError(f"{source}: {_sentence(errors[0])}")


@cache
def _validator(schema_path: Path) -> jsonschema.Draft202012Validator:
    """What checks values against one schema, read once a process."""
    import jsonschema

    return jsonschema.Draft202012Validator(read_yaml(schema_path))


@cache
def can_validate() -> bool:
    """Whether jsonschema is installed; a line on standard error where it is not."""
    found = importlib.util.find_spec("jsonschema") is not None
    if not found:
        print("raretok: config files are not checked: jsonschema is not installed", file=sys.stderr)
    return found


def read_config(path: Path, schema_path: Path) -> dict:
    """A YAML file that follows its schema."""
    value = read_yaml(path)
    validate(value, schema_path, str(path))
    return value


def merge(base: dict, *changes: dict) -> dict:
    """`base` with each of `changes` laid over it, mappings merged key by key, everything else replaced."""
    merged = deepcopy(base)
    for change in changes:
        for key, value in change.items():
            if isinstance(value, dict) and isinstance(merged.get(key), dict):
                merged[key] = merge(merged[key], value)
            else:
                merged[key] = deepcopy(value)
    return merged


def canonical_json(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces, so that equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def key_path(parts: Iterable) -> str:
    """`a.b.0` for the path of a key in nested mappings and lists."""
    return ".".join(str(part) for part in parts)


def _sentence(error: jsonschema.ValidationError) -> str:
    """What is wrong at which key, for the two mistakes that people make and for all others."""
    where = key_path(error.absolute_path)
    if error.validator == "additionalProperties" and isinstance(error.schema.get("properties"), dict):
        known = error.schema["properties"]
        unknown = [key for key in error.instance if key not in known]
        keys = ", ".join(key_path([*error.absolute_path, key]) for key in unknown)
        return f"unknown key {keys}; known here: {', '.join(known)}"
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"key {key_path([*error.absolute_path, missing[0]])} is missing"
    if error.validator == "oneOf" and "description" in error.schema:
        return f"{where} is {error.instance!r}; it can be {error.schema['description']}"
    if error.validator == "oneOf" and error.context:
        # What the alternative that is meant lacks: the one that most of the value fits.
        alternatives = {}
        for mistake in error.context:
            alternatives.setdefault(mistake.relative_schema_path[0], []).append(mistake)
        return _sentence(min(alternatives.values(), key=_distance)[0])
    return f"{where or 'the file'}: {error.message}"


def _distance(mistakes: list[jsonschema.ValidationError]) -> int:
    """How far a value is from an alternative: its mistakes, one of a wrong kind counting most."""
    kinds = {"type": 100, "enum": 100, "required": 10}
    return sum(
        len(set(error.instance) - set(error.schema.get("properties", ())))
        if error.validator == "additionalProperties"
        else kinds.get(error.validator, 1)
        for error in mistakes
    )
