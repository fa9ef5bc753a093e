"""Lemma 3 and the min-p margin; the property tests can fail."""

import math
import subprocess
import sys

import numpy as np
import pytest

from raretok.metrics.sampler_margins import check_lemma3, check_min_p, in_nucleus, min_p_margin, nucleus_margin, softmax


def test_the_printed_margins():
    # Section 3.2: N = 100,000, top_p 0.99, T 0.9; and this paper's own 130 types at top_p 0.95, T 1.
    assert round(nucleus_margin(100_000, 0.99, 0.9), 2) == 14.50
    assert round(nucleus_margin(130, 0.95), 2) == 7.80
    assert min_p_margin(0.1, 2.0) == pytest.approx(2 * math.log(10))


def test_the_nucleus_is_the_smallest_set_of_likeliest_tokens():
    rng = np.random.default_rng(0)
    for _ in range(200):
        p = softmax(rng.normal(0, 2, 7))
        top_p = rng.uniform(0.1, 0.99)
        inside, mass = set(), 0.0
        for i in sorted(range(7), key=lambda i: -p[i]):
            if mass >= top_p:
                break
            inside.add(i)
            mass += p[i]
        assert set(np.flatnonzero(in_nucleus(p, top_p))) == inside


def test_property_tests_find_no_violation_and_are_deterministic():
    assert check_lemma3(1, 400) == 0
    assert check_min_p(1, 400) == 0


def test_property_tests_can_fail():
    # The border cases, half of all, catch a margin that is one percent too small.
    assert check_lemma3(1, 400, factor=0.99) >= 150
    assert check_lemma3(1, 400, factor=0.99) == check_lemma3(1, 400, factor=0.99)
    assert check_min_p(1, 400, printed_sign=True) >= 300


@pytest.mark.parametrize("wrong", [(1, 0.9, 1.0), (10, 0.05, 1.0), (10, 1.0, 1.0), (10, 0.9, 0.0)])
def test_margins_outside_the_lemma_are_refused(wrong):
    with pytest.raises(ValueError, match="no margin"):
        nucleus_margin(*wrong)


def test_a_negative_margin_breaks_the_lemma():
    # Why top_p below 1 / N is refused: the likeliest token, itself the target, would be thresholded.
    z, top_p = np.array([1.0, 0.0, 0.0]), 0.2
    margin = math.log(2 * top_p / (1 - top_p))
    assert margin < 0
    assert ((z < z[0] - margin) & in_nucleus(softmax(z), top_p)).tolist() == [True, False, False]


def test_it_imports_without_torch():
    code = "import sys\nfrom raretok.metrics import sampler_margins\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
