"""Calibration against unigram log-frequency: bins and slopes against loops and known lines."""

import math

import numpy as np
import pytest

from rarepapers.metrics.calibration import calibrate, log_frequencies, slope


def test_frequencies_are_smoothed_by_one():
    found = log_frequencies(np.array([0, 3, 5]))
    np.testing.assert_allclose(np.exp(found), [1 / 11, 4 / 11, 6 / 11])


def test_bins_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    x, y, bins = rng.choice(rng.normal(size=30), 500), rng.normal(size=500), 7
    found = calibrate(x, y, bins)
    width = (x.max() - x.min()) / bins
    members = [[] for _ in range(bins)]
    for i in range(500):
        members[min(int((x[i] - x.min()) / width + 1e-12), bins - 1)].append(i)
    assert found.numbers.tolist() == [len(member) for member in members]
    for k, member in enumerate(members):
        if member:
            assert found.heights[k] == pytest.approx(sum(y[i] for i in member) / len(member))
            assert found.places[k] == pytest.approx(sum(x[i] for i in member) / len(member))
        else:
            assert math.isnan(found.heights[k])
    np.testing.assert_allclose(np.diff(found.edges), width)
    filled = [member for member in members if member]
    points = np.array([[x[member].mean(), y[member].mean()] for member in filled])
    assert found.slope == pytest.approx(np.polyfit(points[:, 0], points[:, 1], 1)[0])
    assert found.token_slope == pytest.approx(np.polyfit(x, y, 1)[0])


def test_a_bin_holds_its_left_edge_and_the_last_one_both():
    assert calibrate(np.array([0.0, 1.0, 2.0, 3.0]), np.zeros(4), 3).numbers.tolist() == [1, 1, 2]


def test_a_model_of_the_unigram_distribution_has_slope_one():
    rng = np.random.default_rng(1)
    log_unigram = log_frequencies(rng.integers(0, 1000, 50))
    tokens = rng.integers(0, 50, 400)
    found = calibrate(log_unigram[tokens], log_unigram[tokens], 5)
    assert found.slope == pytest.approx(1)
    assert found.token_slope == pytest.approx(1)
    assert calibrate(log_unigram[tokens], -2 * log_unigram[tokens], 5).slope == pytest.approx(-2)


def test_one_frequency_alone_has_no_slope():
    assert math.isnan(slope(np.ones(4), np.arange(4.0)))
    # Whose mean is not exactly 0.1.
    assert math.isnan(slope(np.full(7, 0.1), np.arange(7.0)))
    assert math.isnan(slope(np.array([]), np.array([])))
    found = calibrate(np.full(4, -2.0), np.arange(4.0), 3)
    assert found.numbers.sum() == 4
    assert math.isnan(found.slope)
