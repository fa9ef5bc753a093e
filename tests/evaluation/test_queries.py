"""Which types' neighbours are shown."""

import numpy as np
import pytest

from raretok.errors import UserError
from raretok.evaluation.queries import query_ids

SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>", " the", "home", " home", "page", "-", " rare", "x1", " odd", "<unused 0>")
COUNTS = np.array([0, 0, 9, 8, 7, 6, 5, 4, 3, 2, 2, 1, 0])


def test_a_word_is_looked_up_with_a_space_first_then_without():
    assert query_ids(["home", "page", " the", "</s>"], SYMBOLS, COUNTS, 8, "c").tolist() == [6, 7, 4, 2]
    assert query_ids([], SYMBOLS, COUNTS, 8, "c").tolist() == []


def test_rare_ones_occur_and_are_made_of_letters():
    assert query_ids({"rare": 2}, SYMBOLS, COUNTS, 8, "c").tolist() == [9, 11]
    assert query_ids({"rare": 9}, SYMBOLS, COUNTS, 4, "c").tolist() == [4, 5, 6, 7, 9, 11]
    assert query_ids({"rare": 3}, SYMBOLS, COUNTS, 4, "c").tolist() == [4, 6, 11]
    # Where none is made of letters, those that occur; where none occurs, none.
    assert query_ids({"rare": 3}, ("a", "b", "?", "1", "2"), np.array([5, 4, 3, 2, 0]), 2, "c").tolist() == [2, 3]
    assert query_ids({"rare": 3}, SYMBOLS, COUNTS, 12, "c").tolist() == []


def test_an_unknown_word_is_named():
    with pytest.raises(UserError, match=r"'homepage'.*no type of corpus tiny; choose words of its vocabulary.json"):
        query_ids(["home", "homepage"], SYMBOLS, COUNTS, 8, "tiny")
