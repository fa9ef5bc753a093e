"""Perplexity and Uniq by group, and consistency with the total."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.conftest import NextToken

from rarepapers.evaluation.text_scores import score
from raretok.frequency_groups import masses
from raretok.metrics.group_statistics import Groups, distinct, group_perplexities, nonrare_perplexity

GROUPS = Groups(("freq", "med", "rare"), (3, 8), 10)


def test_bounds_are_first_ids():
    assert GROUPS.of(np.arange(10)).tolist() == [0] * 3 + [1] * 5 + [2] * 2
    assert [list(range(10))[part] for part in GROUPS.parts] == [[0, 1, 2], [3, 4, 5, 6, 7], [8, 9]]
    assert Groups(GROUPS.names, (3, 8), 10, "@index").labels == ("freq@index", "med@index", "rare@index")


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0, 20)), min_size=1, max_size=60))
def test_the_total_follows_from_masses_and_group_perplexities(items):
    targets, nll = (np.array(column) for column in zip(*items, strict=True))
    values, numbers = group_perplexities(nll, targets, GROUPS)
    shares = masses(GROUPS.bounds, np.bincount(targets, minlength=10))
    assert numbers.tolist() == [*(shares * len(items)).round().astype(int), len(items)]
    combined = math.prod(value**share for value, share in zip(values, shares, strict=False) if share)
    assert values[3] == pytest.approx(combined, rel=1e-9)
    assert values[3] == pytest.approx(math.exp(nll.mean()), rel=1e-9)
    for group, part in enumerate(GROUPS.parts):
        own = nll[(targets >= part.start) & (targets < part.stop)]
        if len(own):
            assert values[group] == pytest.approx(math.exp(own.mean()), rel=1e-9)
        else:
            assert math.isnan(values[group])


def test_non_rare_is_the_first_and_second_group_together():
    targets, nll = np.array([0, 7, 9, 8, 3]), np.array([1.0, 3.0, 9.0, 8.0, 2.0])
    assert nonrare_perplexity(nll, targets, GROUPS) == (pytest.approx(math.exp(2)), 3)
    value, number = nonrare_perplexity(nll[2:4], targets[2:4], GROUPS)
    assert (math.isnan(value), number) == (True, 0)


def test_a_model_of_known_probabilities_has_known_perplexities():
    # In any context: each frequent type 1/6, each medium 1/20, each rare 1/8.
    table = np.tile([1 / 6] * 3 + [1 / 20] * 5 + [1 / 8] * 2, (10, 1))
    tokens = np.random.default_rng(0).integers(0, 10, 200)
    values, numbers = group_perplexities(score(NextToken(table), tokens, 16, 4, 2).nll, tokens, GROUPS)
    assert values[:3] == pytest.approx([6, 20, 8], rel=1e-5)
    assert math.log(values[3]) == pytest.approx(np.log([6, 20, 8]) @ numbers[:3] / 200, rel=1e-6)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_uniq_of_groups_adds_up_to_the_total(ids):
    found = distinct(np.array(ids), GROUPS)
    assert found.tolist()[:3] == [len({i for i in ids if p.start <= i < p.stop}) for p in GROUPS.parts]
    assert found[:3].sum() == found[3] == len(set(ids))


def test_overflow_is_infinity():
    values, _ = group_perplexities(np.array([1000.0, 1.0]), np.array([9, 0]), GROUPS)
    assert values.tolist()[2:] == [math.inf, pytest.approx(math.exp(500.5))]
