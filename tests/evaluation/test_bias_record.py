"""Summaries of observed predictions and output biases."""

import math

import numpy as np
import pytest

from rarepapers.evaluation.bias_record import bias_changes, divergence_at_start, nearest_to_unigram
from rarepapers.metrics.calibration import log_frequencies

DIVERGENCE = {
    "divergence.steps": np.array([0, 1, 10, 100]),
    "divergence.unigram": np.array([3.0, 1.0, 0.5, 2.0]),
    "divergence.uniform": np.array([0.1, 0.4, 1.5, 9.0]),
    "divergence.empirical": np.array([9.0, 7.0, 6.0, 3.0]),
}


def test_the_nearest_step_and_its_divergences():
    assert nearest_to_unigram(DIVERGENCE) == {"step": 10, "unigram": 0.5, "uniform": 1.5, "empirical": 6.0}
    late = DIVERGENCE | {"divergence.unigram": np.array([np.nan, 1.0, np.nan, 2.0])}
    assert nearest_to_unigram(late)["step"] == 1
    assert nearest_to_unigram({}) == {}
    assert nearest_to_unigram(DIVERGENCE | {"divergence.unigram": np.full(4, np.nan)}) == {}


def test_the_start_is_measured_before_the_first_step():
    assert divergence_at_start(DIVERGENCE) == {"unigram": 3.0, "uniform": 0.1, "empirical": 9.0}
    assert divergence_at_start(DIVERGENCE | {"divergence.steps": np.array([1, 2, 10, 100])}) == {}
    assert divergence_at_start(DIVERGENCE | {"divergence.uniform": np.full(4, np.nan)}).keys() == {
        "unigram",
        "empirical",
    }
    assert divergence_at_start({}) == {}


def test_changes_are_the_largest_from_the_start():
    observed = {"output_bias.norm": [10.0, 12.0, 11.0], "output_bias.divergence": [0.0, 0.0, 0.2]}
    observed = {name: np.array(values) for name, values in observed.items()}
    # With one added, the probabilities are 1/2, 1/4, 1/4.
    found = bias_changes(observed, np.array([1, 0, 0]))
    norm = math.sqrt(math.log(2) ** 2 + 2 * math.log(4) ** 2)
    assert found["norm"] == {"start": 10, "end": 11, "change": pytest.approx(2 / norm)}
    divergence = math.log(3) - math.log(2) / 2 - math.log(4) / 2
    assert found["divergence"] == {"start": 0, "end": 0.2, "change": pytest.approx(0.2 / divergence)}
    assert bias_changes({}, np.array([1, 0, 0])) == {}


def test_a_bias_that_goes_all_the_way_changes_by_one():
    counts = np.array([7, 3, 0, 1])
    log_unigram = log_frequencies(counts)
    q = np.exp(log_unigram)
    learnt = {
        "output_bias.norm": np.array([0.0, np.linalg.norm(log_unigram)]),
        "output_bias.divergence": np.array([sum(p * math.log(p * 4) for p in q), 0.0]),
    }
    found = bias_changes(learnt, counts)
    assert [found[name]["change"] for name in ("norm", "divergence")] == pytest.approx([1, 1])
