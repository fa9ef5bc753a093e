"""BLEU and chrF with signatures; the tokenised score against a literal BLEU."""

import math
from collections import Counter

import pytest

from raretok.data.pairs.preparation import split_compounds
from raretok.metrics.translation_scores import bleu, chrf, tokenised_bleu

HYPOTHESES = ["The cat sat on the mat .", "It is a well-known , old-fashioned house ."]
REFERENCES = ["The cat sat on a mat .", "It is a well-known , new-fashioned house ."]


def reference_bleu(hypotheses, references):
    """Papineni et al. 2002, four n-grams, one reference, over tokens between blanks."""
    matched, total = [0] * 4, [0] * 4
    lengths = [sum(len(line.split()) for line in side) for side in (hypotheses, references)]
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        for n in range(4):
            grams = [
                Counter(tuple(line.split()[i : i + n + 1]) for i in range(len(line.split()) - n))
                for line in (hypothesis, reference)
            ]
            matched[n] += sum((grams[0] & grams[1]).values())
            total[n] += sum(grams[0].values())
    precision = math.exp(sum(math.log(m / t) for m, t in zip(matched, total, strict=True)) / 4)
    return 100 * min(1, math.exp(1 - lengths[1] / lengths[0])) * precision


def test_equal_texts_score_100_and_signatures_say_how():
    for score in (bleu, chrf, tokenised_bleu):
        found = score(REFERENCES, REFERENCES)
        assert found.value == pytest.approx(100)
        assert "version:" in found.signature
    assert bleu(REFERENCES, REFERENCES).signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|")
    assert chrf(REFERENCES, REFERENCES).signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|")
    assert tokenised_bleu(REFERENCES, REFERENCES).signature.startswith("moses|compounds:split|nrefs:1|")


@pytest.mark.parametrize("split", [False, True])
def test_tokenised_bleu_is_the_formula(split):
    sides = (HYPOTHESES, REFERENCES)
    if split:
        sides = [[split_compounds(line) for line in side] for side in sides]
    assert tokenised_bleu(*sides).value == pytest.approx(reference_bleu(*sides))


def test_splitting_compounds_changes_the_number():
    # "fashioned" is right once it stands alone.
    split = [[split_compounds(line) for line in side] for side in (HYPOTHESES, REFERENCES)]
    assert tokenised_bleu(*split).value > tokenised_bleu(HYPOTHESES, REFERENCES).value + 5


def test_without_a_match_the_tokenised_number_is_zero():
    # Words match, four in a row never do: smoothing would give more.
    assert tokenised_bleu(["a b c d e"], ["a c b e d"]).value == 0


def test_unequal_numbers_of_sentences_are_refused():
    with pytest.raises(ValueError, match="1 hypotheses do not fit 2 references"):
        bleu(["a"], ["a", "b"])
