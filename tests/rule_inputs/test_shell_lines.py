"""Shell lines of the rules: changing one reruns nothing (`rerun-triggers`), so settings are in params or programs."""

import re
from pathlib import Path

import pytest

RULES = Path(__file__).parents[2] / "workflow" / "rules"
# Where files lie decides no result.
PATHS = {"--cache resources/cache"}


@pytest.mark.parametrize("path", sorted(RULES.glob("*.smk")), ids=lambda path: path.stem)
def test_values_of_options_are_placeholders(path):
    blocks = re.findall(r'^ +shell:\n +"""\n(.*?)"""', path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert blocks
    options = [option for block in blocks for option in re.findall(r"--[a-z0-9-]+(?: [^\s\\]+)?", block)]
    assert options
    assert [option for option in options if not re.fullmatch(r"--\S+ \{\S+\}", option) and option not in PATHS] == []
