"""Frequency groups: bounds by every rule, masses that add up, and the papers' totals."""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from raretok.frequency_groups import bounds, masses
from raretok.metrics.group_statistics import Groups

PAPERS = Path(__file__).parents[3] / "config" / "papers"
# 40 types: falling counts, 1,000 tokens.
COUNTS = np.array([0, 0, 100, 0, 300, 200, 100, 80, 60, 40] + [10] * 8 + [2] * 20 + [0] * 2)


@pytest.mark.parametrize(
    ("rule", "counts", "expected"),
    [
        ({"shares": [0.3, 0.5, 0.2]}, COUNTS, (12, 32)),
        # The corpus of agg: 44,256 types.
        ({"shares": [0.3, 0.5, 0.2]}, np.ones(44_256), (13_277, 35_405)),
        ({"bounds": [13_000, 36_000], "names": ["a"]}, np.ones(44_256), (13_000, 36_000)),
        # 10 of 1,000 tokens are often enough, and the ids without tokens before them are in the group, too.
        ({"frequency": 0.01, "index": 20}, COUNTS, (18, 20)),
        ({"frequency": 0.0101, "index": 20}, COUNTS, (10, 20)),
        # 100 + 300 + 200 + 100 + 80 = 780 tokens; with 60 and 40 more 880; with 8 x 10 more 960.
        ({"masses": [0.78, 0.1, 0.12]}, COUNTS, (8, 10)),
        ({"masses": [0.7801, 0.18, 0.04]}, COUNTS, (9, 19)),
    ],
)
def test_bounds_by_every_rule(rule, counts, expected):
    assert bounds(rule, counts) == expected


def test_masses_are_reached_by_the_smallest_bounds():
    first, second = bounds({"masses": [0.858, 0.094, 0.048]}, COUNTS)
    shares = masses((first, second), COUNTS)
    assert shares[0] >= 0.858 > masses((first - 1, second), COUNTS)[0]
    assert shares[2] <= 0.048 < masses((first, second - 1), COUNTS)[2]


@pytest.mark.parametrize(
    "rule",
    [
        {"shares": [0.3, 0.7, 0.0]},
        {"shares": [0.0, 0.5, 0.5]},
        {"bounds": [13_000, 36_000]},
        {"bounds": [20, 20]},
        {"bounds": [10, 40]},
        {"frequency": 0.5, "index": 20},
        {"frequency": 0.01, "index": 18},
        {"frequency": 0.01, "index": 41},
        {"masses": [0.05, 0.04, 0.91]},
    ],
)
def test_an_empty_group_is_one_sentence(rule):
    with pytest.raises(ValueError, match=r"begin at ids 0, .* of 40 types, so that one of them is empty"):
        bounds(rule, COUNTS)


def test_masses_add_up():
    limits = (8, 18)
    shares = masses(limits, COUNTS)
    assert shares.sum() == pytest.approx(1, abs=1e-15)
    assert shares == pytest.approx([0.78, 0.18, 0.04], abs=1e-15)
    groups = Groups(("high", "mid", "low"), limits, len(COUNTS))
    assert groups.of(np.array([[0, 7], [8, 17], [18, 39]])).tolist() == [[0, 0], [1, 1], [2, 2]]


def published(paper, table):
    """Perplexities by row of a table: groups in the order of the paper, and the total."""
    rows = defaultdict(list)
    with (PAPERS / paper / "numbers.csv").open(encoding="utf-8") as stream:
        for line in csv.DictReader(stream):
            if (line["item"], line["column"]) == (table, "PPL"):
                rows[line["row"]].append(float(line["value"]))
    return rows


@pytest.mark.parametrize(
    ("paper", "table", "shares", "rows"),
    [
        ("agg", "table1", (9145, 835, 20), 2),
        ("agg", "table2", (9145, 835, 20), 4),
        ("agg", "table3", (9368, 612, 20), 2),
        ("agg", "table4", (9368, 612, 20), 2),
        ("agps", "table4", (8580, 937, 483), 3),
    ],
)
def test_published_totals_are_the_groups_weighted_by_their_masses(paper, table, shares, rows):
    """Inventory 1.3 and 3.3: which masses the papers' groups have (agps's three digits are 0.858, 0.094, 0.048)."""
    weights = masses((1, 2), np.array(shares))
    tables = published(paper, table)
    assert len(tables) == rows
    for *groups, total in tables.values():
        assert np.exp(weights @ np.log(groups)) == pytest.approx(total, abs=0.0051)
