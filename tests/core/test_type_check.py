"""Type checks of the config: error messages, and the page of parameters and schemas generated from the types."""

import json
import math
import sys
from pathlib import Path
from typing import Annotated, Literal, NotRequired, Required, TypedDict

import pytest

from rarepapers.core.config_files import read_yaml
from rarepapers.core.type_check import PARTIAL, AboveZero, Limit, Name, Positive, check_of, keys

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import parameters  # noqa: E402

FILES = [
    (name, path)
    for name, (where, _) in parameters.FILES.items()
    for path in (ROOT / "config").glob(where.replace("<scale>", "*").replace("<paper>", "*"))
]


class Square(TypedDict):
    kind: Literal["square"]
    side: AboveZero


@keys(one_of=("radius", "diameter"))
class Circle(TypedDict, total=False):
    kind: Required[Literal["circle"]]
    radius: float
    diameter: float


@keys(unit=["digits"])
class Drawing(TypedDict):
    shapes: dict[Name, Square | Circle]
    sizes: NotRequired[Annotated[list[Positive] | None, "null or a list of sizes"]]
    most: NotRequired[Annotated[Square, PARTIAL]]
    unit: NotRequired[str]
    digits: NotRequired[Annotated[int, Limit("multipleOf", 2)]]


SHAPES = {"a": {"kind": "square", "side": 1}}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, None),
        ({"most": {"side": 2}}, None),
        ({"sizes": [1, 2]}, None),
        ({"shapes": {"a": {"kind": "square"}}}, "key shapes.a.side is missing"),
        ({"shapes": {"a": {"kind": "square", "side": 0}}}, "shapes.a.side is 0; it must be above 0"),
        ({"shapes": {"a": {"kind": "square", "side": True}}}, "shapes.a.side is True; it must be a number"),
        ({"shapes": {"a": {"kind": "square", "side": math.inf}}}, "shapes.a.side is inf; it must be a number"),
        ({"shapes": {"a": {"kind": "line"}}}, "shapes.a.kind is 'line'; it can be square, circle"),
        ({"shapes": {"a": {"kind": "circle"}}}, "key shapes.a.radius or shapes.a.diameter is missing"),
        (
            {"shapes": {"a": {"kind": "circle", "radius": 1, "diameter": 2}}},
            "shapes.a: radius and diameter exclude each other; keep one of them",
        ),
        ({"shapes": {"a": {"side": 1}}}, "key shapes.a.kind is missing"),
        ({"shapes": {"../a": {}}}, "a key of shapes is '../a'; it can be letters and digits, then also _ . + -"),
        ({"shapes": []}, "shapes is []; it must be a mapping"),
        ({"sizes": [0]}, "sizes is [0]; it can be null or a list of sizes"),
        ({"most": {"sides": 2}}, "unknown key most.sides; known here: kind, side"),
        ({"unit": "cm"}, "key digits is missing; unit requires it"),
        ({"digits": 3}, "digits is 3; it must be a multiple of 2"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_key(changes, expected):
    assert check_of(Drawing)({"shapes": SHAPES} | changes, "") == expected


def test_the_page_and_the_schemas_are_up_to_date():
    for path, content in parameters.files().items():
        assert (ROOT / path).read_text(encoding="utf-8") == content, f"{path} is stale; run python docs/parameters.py"


def test_every_file_names_its_schema():
    for name, path in FILES:
        schema = path.read_text(encoding="utf-8").splitlines()[0].partition("$schema=")[2]
        assert (path.parent / schema).resolve() == ROOT / "config" / "schemas" / f"{name}.schema.json"


def test_the_schemas_accept_the_files_and_refuse_wrong_ones():
    jsonschema = pytest.importorskip("jsonschema")
    for name, path in FILES:
        schema = json.loads((ROOT / "config" / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))
        editor = jsonschema.Draft202012Validator(schema)
        editor.check_schema(schema)
        content = read_yaml(path)
        assert next(editor.iter_errors(content), None) is None, path
        assert not editor.is_valid(content | {"_unknown": {}})
