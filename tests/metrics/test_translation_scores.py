"""BLEU and chrF with signatures; the tokenised score against a literal BLEU."""

import math
import sys
from collections import Counter
from importlib.metadata import metadata

import pytest
from sacrebleu.metrics import BLEU

from rarepapers.core.errors import UserError
from rarepapers.data.pairs.preparation import split_compounds
from rarepapers.metrics.translation_scores import Scoring, bleu, chrf, tokenised_bleu

ENGLISH = Scoring("en")

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
        found = score(REFERENCES, REFERENCES, ENGLISH)
        assert found.value == pytest.approx(100)
        assert "version:" in found.signature
    assert bleu(REFERENCES, REFERENCES, ENGLISH).signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|")
    assert chrf(REFERENCES, REFERENCES, ENGLISH).signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|")
    assert tokenised_bleu(REFERENCES, REFERENCES, ENGLISH).signature.startswith("moses|compounds:split|nrefs:1|")


@pytest.mark.parametrize("split", [False, True])
def test_tokenised_bleu_is_the_formula(split):
    sides = (HYPOTHESES, REFERENCES)
    if split:
        sides = [[split_compounds(line) for line in side] for side in sides]
    assert tokenised_bleu(*sides, ENGLISH).value == pytest.approx(reference_bleu(*sides))


def test_splitting_compounds_changes_the_number():
    # "fashioned" is right once it stands alone.
    split = [[split_compounds(line) for line in side] for side in (HYPOTHESES, REFERENCES)]
    assert tokenised_bleu(*split, ENGLISH).value > tokenised_bleu(HYPOTHESES, REFERENCES, ENGLISH).value + 5


def test_without_a_match_the_tokenised_number_is_zero():
    # Words match, four in a row never do: smoothing would give more.
    assert tokenised_bleu(["a b c d e"], ["a c b e d"], ENGLISH).value == 0


def test_unequal_numbers_of_sentences_are_refused():
    with pytest.raises(ValueError, match="1 hypotheses do not fit 2 references"):
        bleu(["a"], ["a", "b"], ENGLISH)


CHINESE = ["今天天气很好，我们一起去公园散步吧。", "这个问题需要更多的时间才能解决。", "火车将在下午五点半到达北京站。"]
SHORTER = ["今天天气很好，我们一起去公园散步。", "这个问题需要更多时间才能解决。", "火车将在下午五点半到达北京站。"]


def test_the_language_selects_the_tokenizer():
    found = bleu(SHORTER, CHINESE, Scoring("zh"))
    assert found.value == pytest.approx(BLEU(tokenize="zh").corpus_score(SHORTER, [CHINESE]).score)
    assert found.value > 80
    assert "|tok:zh|" in found.signature
    assert bleu(SHORTER, CHINESE, ENGLISH).value < 40


def test_an_entry_can_name_the_tokenizer_of_a_language():
    preparation = {"bleu_tokenizer": {"th": "char"}}
    assert "|tok:char|" in bleu(REFERENCES, REFERENCES, Scoring.of("th", preparation)).signature
    assert "|tok:13a|" in bleu(REFERENCES, REFERENCES, Scoring.of("en", preparation)).signature
    with pytest.raises(UserError, match=r"preparation.bleu_tokenizer of th is 13b; sacrebleu has 13a, char, "):
        Scoring.of("th", {"bleu_tokenizer": {"th": "13b"}})


def test_a_tokenizer_that_is_not_installed_is_one_sentence_with_a_way_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "MeCab", None)
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ja_mecab", raising=False)
    with pytest.raises(
        UserError, match=r'run pip install "sacrebleu\[ja\]", or add bleu_tokenizer: \{ja: char\}'
    ) as error:
        Scoring("ja")
    assert "\n" not in str(error.value)
    assert "|tok:char|" in bleu(CHINESE, CHINESE, Scoring.of("ja", {"bleu_tokenizer": {"ja": "char"}})).signature
    assert "ja" in metadata("sacrebleu").get_all("Provides-Extra")


def test_case_counts_only_where_the_corpus_has_it():
    lower = [line.lower() for line in REFERENCES]
    assert bleu(lower, REFERENCES, ENGLISH).value < 99
    for score in (bleu, chrf, tokenised_bleu):
        found = score(lower, REFERENCES, Scoring.of("en", {"lower": True}))
        assert found.value == pytest.approx(100)
        assert "case:lc" in found.signature
