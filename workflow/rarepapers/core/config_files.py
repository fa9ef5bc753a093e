"""Config files: reading and checking; every mistake is one sentence that names file and key."""

import json
import math
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path

import yaml

from rarepapers.core.errors import UserError
from rarepapers.core.type_check import validate

# libyaml if PyYAML has it, ten times as fast: every start of Snakemake reads 30 files.
SAFE_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
CONSTRUCTOR = yaml.constructor.SafeConstructor()


def read_yaml(path: Path) -> dict:
    """The mapping in a YAML file.

    Raises UserError if the file is missing, is not YAML or holds no mapping, if a key occurs twice (YAML would silently
    keep the second value), and for a number that is not finite (.nan, .inf, 1.0e+999).
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
    """Raises UserError for a key that occurs twice in a mapping, and for a number that is not finite."""
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
        elif current.tag.endswith(":float") and not math.isfinite(CONSTRUCTOR.construct_yaml_float(current)):
            raise UserError(f"{path}, line {line}: {current.value} is not a number; write a finite one")


def read_config(path: Path, kind: object) -> dict:
    """The content of a YAML file, checked against the type `kind`; UserError names file and key of a mistake."""
    value = read_yaml(path)
    validate(value, kind, str(path))
    return value


def merge(base: dict, *changes: dict) -> dict:
    """`base` overlaid with each of `changes`: mappings are merged key by key, other values replaced."""
    merged = deepcopy(base)
    for change in changes:
        for key, value in change.items():
            if isinstance(value, dict) and isinstance(merged.get(key), dict):
                merged[key] = merge(merged[key], value)
            else:
                merged[key] = deepcopy(value)
    return merged


def canonical_json(value: object) -> str:
    """Canonical JSON of a value: sorted keys and no spaces, so that equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def are_numbers(text: str, words: Iterable[str] = ()) -> bool:
    """Whether a cell of a csv is empty or finite numbers (`0.5; 0`); words: also allowed, such as `inf`."""
    try:
        return all(part in words or math.isfinite(float(part)) for part in text.split(";")) if text else True
    except ValueError:
        return False
