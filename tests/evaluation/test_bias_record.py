"""Single numbers of what training observed of predictions and the output bias."""

import math

import numpy as np
import pytest

from raretok.evaluation.bias_record import bias_changes, nearest_to_unigram

DIVERGENCE = {
    "divergence.steps": np.array([0, 1, 10, 100]),
    "divergence.unigram": np.array([3.0, 1.0, 0.5, 2.0]),
    "divergence.uniform": np.array([0.1, 0.4, 1.5, 9.0]),
    "divergence.empirical": np.array([9.0, 7.0, 6.0, 3.0]),
}


def test_the_nearest_step_and_what_is_there():
    assert nearest_to_unigram(DIVERGENCE) == {"step": 10, "unigram": 0.5, "uniform": 1.5, "empirical": 6.0}
    late = DIVERGENCE | {"divergence.unigram": np.array([np.nan, 1.0, np.nan, 2.0])}
    assert nearest_to_unigram(late)["step"] == 1
    assert nearest_to_unigram({}) == {}
    assert nearest_to_unigram(DIVERGENCE | {"divergence.unigram": np.full(4, np.nan)}) == {}


def test_changes_are_the_greatest_against_the_start():
    found = bias_changes(
        {"output_bias.norm": np.array([10.0, 12.0, 11.0]), "output_bias.divergence": np.array([0.0, 0.0, 0.2])}
    )
    assert found["norm"] == {"start": 10, "end": 11, "change": pytest.approx(0.2)}
    # From nothing to something is no finite share.
    assert found["divergence"] == {"start": 0, "end": 0.2, "change": math.inf}
    assert bias_changes({"output_bias.norm": np.zeros(3)})["norm"]["change"] == 0
    assert bias_changes({}) == {}
