"""Criteria of claims change only with a line in the table of amendments, docs/statistics.md."""

import csv
import hashlib
import json
import re
from pathlib import Path

import pytest

from rarepapers.core.code_digest import _program

ROOT = Path(__file__).parents[3]
# Columns of claims.csv that decide a verdict; the others are words.
CRITERION = ("id", "kind", "unit", "null", "direction", "margin", "size", "measured_by")
PAPERS = ("stop_jostling", "agg", "agps", "natural_bias")


def criteria(paper):
    """What decides the verdicts of a paper: columns of its claims, quantities of tables, and its functions."""
    with (ROOT / "config" / "papers" / paper / "claims.csv").open(encoding="utf-8", newline="") as file:
        claims = list(csv.DictReader(file))
    rows = [[claim[name] for name in CRITERION] for claim in claims]
    # The quantity of a claim about a figure is a label, that of a claim about tables names the numbers.
    rows += [claim["quantity"] for claim in claims if claim["measured_by"] == "table"]
    return json.dumps(rows) + _program(ROOT / "workflow" / "rarepapers" / "papers" / paper / "claims.py")[0]


@pytest.mark.parametrize("paper", PAPERS)
def test_criteria_have_the_digest_of_the_table(paper):
    digest = hashlib.sha256(criteria(paper).encode()).hexdigest()[:12]
    text = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    (written,) = re.findall(rf"^\| {paper} \| `(.*)` \|$", text, flags=re.MULTILINE)
    assert written == digest, "add a line to the table of amendments in docs/statistics.md, then write this digest"
