"""Selection of the types whose neighbours are shown."""

import numpy as np
import pytest

from rarepapers.core.errors import UserError
from rarepapers.evaluation.queries import query_ids

SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>", " the", "home", " home", "page", "-", " rare", "x1", " odd", "<unused 0>")
# All except the special types and the unused one.
KNOWN = np.arange(13) % 12 > 3


def test_a_word_is_looked_up_with_a_space_first_then_without():
    assert query_ids(["home", "page", " the"], SYMBOLS, KNOWN, 8, "c").tolist() == [6, 7, 4]
    assert query_ids([], SYMBOLS, KNOWN, 8, "c").tolist() == []


def test_rare_ones_occur_and_are_made_of_letters():
    assert query_ids({"rare": 2}, SYMBOLS, KNOWN, 8, "c").tolist() == [9, 11]
    assert query_ids({"rare": 9}, SYMBOLS, KNOWN, 4, "c").tolist() == [4, 5, 6, 7, 9, 11]
    assert query_ids({"rare": 3}, SYMBOLS, KNOWN, 4, "c").tolist() == [4, 6, 11]
    # If none consists of letters, any that occur; if none occurs, none.
    assert query_ids(
        {"rare": 3}, ("a", "b", "?", "1", "2"), np.array([1, 1, 1, 1, 0], dtype=bool), 2, "c"
    ).tolist() == [2, 3]
    assert query_ids({"rare": 3}, SYMBOLS, KNOWN, 12, "c").tolist() == []


def test_an_unknown_word_is_named():
    with pytest.raises(UserError, match=r"'homepage'.*no type of corpus tiny that occurs in training; choose words of"):
        query_ids(["home", "homepage"], SYMBOLS, KNOWN, 8, "tiny")


@pytest.mark.parametrize("word", ["</s>", "<unused 0>"])
def test_special_and_unseen_types_are_no_queries(word):
    with pytest.raises(UserError, match=f"'{word}'.*no type of corpus tiny that occurs"):
        query_ids([word], SYMBOLS, KNOWN, 8, "tiny")
