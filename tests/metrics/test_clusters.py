"""Clusters of figure 5 and mean cosines in them."""

import math
import string

import numpy as np
import pytest

from rarepapers.metrics.clusters import MASKS, figure_order, mask, mask_cosines

SHAKESPEARE = sorted("\n !$&',-.3:;?" + string.ascii_letters)


def literal_name(a: str, b: str, same_language: bool) -> str:
    if a == b:
        return "ID" if same_language else "T"
    if a.lower() == b.lower():
        return "C" if same_language else "T+C"
    if a.isupper() and b.isupper():
        return "UC"
    if a.islower() and b.islower():
        return "LC"
    return "NA" if not a.isalpha() and not b.isalpha() else ""


def test_every_pair_has_its_literal_name():
    names = mask(SHAKESPEARE)
    tokens = [(s, language) for language in (0, 1) for s in SHAKESPEARE]
    for i, (a, first) in enumerate(tokens):
        for j, (b, second) in enumerate(tokens):
            assert names[i, j] == literal_name(a, b, first == second), (a, b, first, second)


def test_sizes_are_the_captions():
    names = mask(SHAKESPEARE)
    sizes = {name: int((names == name).sum()) for name in (*MASKS, "ID")}
    # In all four quadrants, as the authors' notebook has them: 2 within a language, 2 across.
    clusters = {"NA": 4 * 13 * 12, "UC": 4 * 26 * 25, "LC": 4 * 26 * 25}
    assert sizes == clusters | {"ID": 130, "T": 130, "C": 2 * 52, "T+C": 2 * 52}
    assert (names == "").sum() == 10_608
    assert (names == names.T).all()


def test_figure_order_is_by_language_then_alphabet():
    symbols = ["b", "!", "A", "a", "B"]
    assert figure_order(symbols).tolist() == [1, 2, 4, 3, 0, 6, 7, 9, 8, 5]


def test_means_are_the_literal_ones():
    symbols = ["!", "?", "A", "B", "a", "c"]
    w = np.random.default_rng(0).normal(size=(12, 3))
    sums = {name: [] for name in (*MASKS, "off", "HR-HR", "LR-LR", "HR-LR")}
    for i in range(12):
        for j in range(12):
            same_language = (i < 6) == (j < 6)
            name = literal_name(symbols[i % 6], symbols[j % 6], same_language)
            cosine = np.dot(w[i], w[j]) / np.linalg.norm(w[i]) / np.linalg.norm(w[j])
            if name != "ID":
                sums[name or "off"].append(cosine)
                if same_language:
                    sums["HR-HR" if i < 6 else "LR-LR"].append(cosine)
            if i < 6 <= j:
                sums["HR-LR"].append(cosine)
    found = mask_cosines(w, symbols)
    assert found.keys() == sums.keys()
    for name, values in sums.items():
        assert found[name] == (pytest.approx(np.mean(values)), len(values)), name


def test_a_mask_without_pairs_has_no_mean():
    value, pairs = mask_cosines(np.eye(2), ["a"])["UC"]
    assert math.isnan(value)
    assert pairs == 0
