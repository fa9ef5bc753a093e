"""Moses' normalisation, tokenisation and its inverse; cleaning as in clean-corpus-n.perl."""

import pytest

from rarepapers.data.pairs.preparation import Preparation, described, only_printing, reason_to_drop, split_compounds

MOSES = {"normalise": "moses", "tokenise": "moses", "aggressive": True}


def test_moses_tokens_detokenise_to_the_text():
    english = Preparation(MOSES, "en")
    line = english.apply("He said: “It’s a well-known\u200b fact”, 3,5 & more.")
    assert line == "He said : &quot; It &apos;s a well @-@ known fact , &quot; 3,5 &amp; more ."
    assert english.undo(line) == 'He said: "It\'s a well-known fact," 3,5 & more.'
    # Languages differ in the words that are split.
    assert Preparation(MOSES, "de").apply("z.B. ein Hund.") == "z.B. ein Hund ."


def test_non_printing_characters_become_blanks():
    # Like remove-non-printing-char.perl: a soft hyphen, a joiner, private use, a control character, an unassigned one.
    line = "a\u00adb\u200dc\ue000d\x96e\U000e0fffé ☃ 你"
    assert only_printing(line) == "a b c d e é ☃ 你"
    assert Preparation({"normalise": "moses", "tokenise": "none"}, "de").apply(line) == "a b c d e é ☃ 你"


def test_by_default_text_is_unchanged():
    plain = Preparation({"normalise": "none", "tokenise": "none"}, "en")
    assert plain.apply("It’s well-known.") == plain.undo("It’s well-known.") == "It’s well-known."
    assert plain.length("It isn't.") == 4
    assert Preparation(MOSES, "en").length("a b @-@ c") == 4
    assert plain.words("Well-known.") == "Well-known ."
    assert Preparation({"lower": True}, "de").apply("Über ALLES") == "über alles"


def test_description_for_the_manifest():
    assert described(MOSES)["library"].startswith("sacremoses ")
    assert "library" not in described({"normalise": "none", "tokenise": "none"})


def test_compounds_are_split_at_hyphens():
    assert split_compounds("a well-known state-of-the-art - thing") == (
        "a well ##AT##-##AT## known state ##AT##-##AT## of ##AT##-##AT## the ##AT##-##AT## art - thing"
    )


@pytest.mark.parametrize(
    ("lengths", "reason"),
    [
        ((10, 10), None),
        ((11, 10), "length"),
        ((10, 11), "length"),
        ((6, 4), None),
        ((7, 4), "ratio"),
        ((4, 7), "ratio"),
    ],
)
def test_cleaning_keeps_pairs_at_the_bounds(lengths, reason):
    assert reason_to_drop(*lengths, {"max_length": 10, "max_ratio": 1.5}) == reason
    assert reason_to_drop(*lengths, {}) is None
