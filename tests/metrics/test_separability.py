"""Linear discriminant analysis in the plane."""

import math

import numpy as np
import pytest

from rarepapers.metrics.separability import separability

RNG = np.random.default_rng(0)


def test_separate_groups_give_1_and_mixed_ones_chance():
    a = RNG.normal(0, 1, (200, 2))
    assert separability(a, RNG.normal(9, 1, (50, 2))) == 1.0
    assert separability(a, a) == 0.5
    # Groups of very different sizes count the same.
    mixed = separability(RNG.normal(0, 1, (20000, 2)), RNG.normal(0, 1, (2000, 2)))
    assert 0.5 <= mixed == pytest.approx(0.5, abs=0.03)


def test_equal_covariances_give_the_theoretical_accuracy():
    # Means two standard deviations apart along a stretched axis: Phi(1) of each group is on its own side.
    stretch = np.array([[3.0, 0.0], [2.9, 0.2]])
    a = RNG.normal(0, 1, (20000, 2)) @ stretch
    b = RNG.normal([0.0, 2.0], 1, (20000, 2)) @ stretch
    assert separability(a, b) == pytest.approx(0.5 * (1 + math.erf(1 / math.sqrt(2))), abs=0.005)


def test_unequal_spreads_have_the_best_border():
    """A narrow clump in the flank of a wide group: a border half way between the means would misplace that flank."""
    a, b = RNG.normal(0, 1, (20000, 2)), RNG.normal([1.0, 0.0], 0.05, (20000, 2))
    # The best border is left of the clump, about where the densities cross, not half way between the means, at 0.5.
    places = np.linspace(0.5, 1, 5001)
    left_of = np.vectorize(lambda x: (1 + math.erf(x / math.sqrt(2))) / 2)
    theory = ((left_of(places) + 1 - left_of((places - 1) / 0.05)) / 2).max()
    midway = (left_of(0.5) + 1) / 2
    assert theory > midway + 0.05
    assert separability(a, b) == pytest.approx(theory, abs=0.01)
    assert separability(b, a) == separability(a, b)


def test_no_other_border_along_the_direction_is_better():
    a, b = np.array([[0.0, 0], [1, 0], [2, 0], [9, 0]]), np.array([[2.0, 0], [3, 0], [3, 0], [4, 0]])
    # With equal means there is no direction.
    assert separability(a, b) == 0.5
    a[3] = [5, 0]
    # After 1 it is (2/4 + 4/4) / 2, after 2 (3/4 + 3/4) / 2. No border divides the equal 2s, which would give 7/8.
    assert separability(a, b) == pytest.approx(0.75)


def test_an_affine_map_changes_nothing():
    a, b = RNG.normal(0, 1, (60, 2)), RNG.normal(1, 1, (40, 2))
    matrix = np.array([[2.0, -1.0], [0.5, 3.0]])
    expected = separability(a, b)
    assert 0.6 < expected < 0.95
    assert separability(a @ matrix + 5, b @ matrix + 5) == pytest.approx(expected)
    assert separability(1e-6 * a, 1e-6 * b) == pytest.approx(expected)
    assert separability(b, a) == pytest.approx(expected)


def test_points_on_a_line_and_single_points():
    line = np.array([[1.0, 2.0]])
    assert separability(np.arange(5)[:, None] * line, np.arange(7, 9)[:, None] * line) == 1.0
    assert separability(np.zeros((3, 2)), np.ones((1, 2))) == 1.0
    assert separability(np.zeros((3, 2)), np.zeros((2, 2))) == 0.5


def test_empty_groups_and_nan_give_nan():
    assert math.isnan(separability(np.zeros((0, 2)), np.zeros((2, 2))))
    assert math.isnan(separability(np.full((2, 2), np.nan), np.zeros((2, 2))))
