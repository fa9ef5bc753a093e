"""Nearest tokens and related characters."""

import numpy as np
import pytest

from rarepapers.metrics.neighbours import cosines, nearest_to, related, related_share

RNG = np.random.default_rng(0)
SYMBOLS = ["!", "A", "B", "a", "b", "c"]
# table 2 of stop_jostling as printed: neighbours of A_HR, a_HR, A_LR, a_LR among A B E I O a e i o of both.
TABLE2_SYMBOLS = list("ABEIOaeio")
BASELINE = {
    "A_HR": "B_HR E_HR O_HR",
    "a_HR": "o_HR i_HR e_HR",
    "A_LR": "e_LR O_LR I_LR",
    "a_LR": "i_LR o_LR e_HR",
}
PROPOSED = {
    "A_HR": "A_LR a_HR a_LR",
    "a_HR": "a_LR A_HR A_LR",
    "A_LR": "A_HR B_LR a_LR",
    "a_LR": "a_HR i_LR A_LR",
}


def nearest(w, k):
    return nearest_to(w, np.arange(len(w)), k)


def test_nearest_equals_a_full_sort():
    w = RNG.normal(size=(17, 5))
    ids, values = nearest(w, 4)
    for i in range(17):
        scores = []
        for j in range(17):
            if j != i:
                scores.append((-np.dot(w[i], w[j]) / (np.linalg.norm(w[i]) * np.linalg.norm(w[j])), j))
        expected = sorted(scores)[:4]
        assert ids[i].tolist() == [j for _, j in expected]
        assert values[i] == pytest.approx([-score for score, _ in expected])


def test_nearest_to_queries_are_rows_of_all_neighbours():
    # A duplicate of the query's row is a neighbour; the query itself is not.
    w = RNG.normal(size=(17, 5))
    w[9] = 2 * w[4]
    ids, values = nearest(w, 16)
    queries = np.array([4, 9, 0])
    found, cosines_of = nearest_to(w, queries, 6)
    assert np.array_equal(found, ids[queries, :6])
    assert found[:2, 0].tolist() == [9, 4]
    np.testing.assert_allclose(cosines_of, values[queries, :6])
    assert nearest_to(w, queries[:0], 6)[0].shape == (0, 6)
    known = np.isin(np.arange(17), [0, 2, 4, 9, 11])
    found, _ = nearest_to(w, queries, 6, known)
    for query, row in zip(queries, found, strict=True):
        assert row.tolist() == [i for i in ids[query] if known[i]]


def test_ties_zero_rows_and_few_tokens():
    w = np.array([[1.0, 0], [0, 0], [1, 0], [1, 0]])
    ids, values = nearest(w, 9)
    assert ids.tolist() == [[2, 3, 1], [0, 2, 3], [0, 3, 1], [0, 2, 1]]
    assert values[1].tolist() == [0, 0, 0]
    assert cosines(w)[1, 1] == 0


def test_related_characters():
    n, names = len(SYMBOLS), [f"{s}{language}" for language in "HL" for s in SYMBOLS]
    found = {names[i]: {names[j] for j in np.flatnonzero(row)} for i, row in enumerate(related(SYMBOLS))}
    assert found["AH"] == {"aH", "AL", "aL"}
    assert found["bL"] == {"BL", "BH", "bH"}
    assert found["cH"] == {"cL"}
    assert found["!H"] == found["!L"] == set()
    assert related(SYMBOLS).shape == (2 * n, 2 * n)


@pytest.mark.parametrize(("printed", "count"), [(BASELINE, 0), (PROPOSED, 10)])
def test_table_2_as_printed(printed, count):
    def number(name):
        symbol, language = name.split("_")
        return TABLE2_SYMBOLS.index(symbol) + (language == "LR") * len(TABLE2_SYMBOLS)

    ids = np.zeros((18, 3), dtype=int)
    for query, names in printed.items():
        ids[number(query)] = [number(name) for name in names.split()]
    assert related_share(ids, TABLE2_SYMBOLS, "Aa") == (count, 12)


def test_all_letters_but_missing_ones_count():
    # The only neighbour of i is its translation, i + n.
    ids = ((np.arange(12) + 6) % 12)[:, None]
    assert related_share(ids, SYMBOLS) == (10, 10)
    assert related_share(ids, SYMBOLS, "Aa") == (4, 4)
    assert related_share(ids, SYMBOLS, "Zz") == (0, 0)
