"""Error rate of a paper's verdicts: the bar published in docs/statistics.md, with fewer projects."""

import sys
from pathlib import Path

import numpy as np
import pytest

from rarepapers.reporting.statistics.moderated_t import estimate

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

import claims_error_rate as rates

PROJECTS = 2000
# 5% plus three standard errors for this number of projects.
BAR = 0.05 + 3 * (0.05 * 0.95 / PROJECTS) ** 0.5


@pytest.mark.parametrize("seeds", [2, 3, 5])
@pytest.mark.parametrize("spread", rates.VARIANCES)
def test_the_family_wise_error_is_at_most_5_percent(seeds, spread):
    family = rates.FAMILIES["stop_jostling"]
    found = rates.error_rate(family, seeds, rates.VARIANCES[spread], "ours", PROJECTS, seed=1)
    assert found <= BAR


def test_the_simulation_can_fail():
    """limma's d0, which is made for thousands of rows, exceeds the bar with the papers' numbers of rows."""
    assert rates.error_rate(rates.FAMILIES["agps"], 3, rates.equal, rates.LIMMA, PROJECTS) > BAR


@pytest.mark.parametrize("spread", [rates.drawn, rates.larger(1, 30)], ids=["log-normal", "one outlier"])
@pytest.mark.parametrize("rows", [3, 5, 14])
def test_the_simulation_equals_the_tests_of_claims(rows, spread):
    family = rates.Family(2, rows, min(4, rows - 1))
    values = rates.contrasts(family, 3, 5, spread, np.random.default_rng(0))
    simulated = rates.p_values(values, family.tested, "ours")
    plain, level = (rates.p_values(values, family.tested, method) for method in ("t", "levels"))
    for project, pool in np.ndindex(5, 2):
        table = values[project, pool]
        differences = [dict(enumerate(row, 1)) for row in table[1:] - table[0]]
        for place in range(family.tested):
            row = differences[place]
            assert estimate(row, differences).p() == pytest.approx(simulated[project, pool, place], rel=1e-4)
            assert estimate(row).p() == pytest.approx(plain[project, pool, place])
            levels = [dict(enumerate(row, 1)) for row in table[1:]]
            moderated = estimate(levels[place], levels, compared=False).p()
            assert moderated == pytest.approx(level[project, pool, place], rel=1e-4)


def test_repeated_looks_raise_the_error():
    family = rates.FAMILIES["natural_bias"]
    once = rates.error_rate(family, 5, rates.equal, "ours", PROJECTS)
    often = rates.error_rate(family, 5, rates.equal, "ours", PROJECTS, first=2)
    assert once < BAR < 2 * once < often
    assert rates.error_rate(family, 5, rates.equal, "ours", PROJECTS, first=5) == once
