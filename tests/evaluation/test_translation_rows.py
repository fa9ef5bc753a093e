"""Metric rows of translations: plain text and Moses tokens of the same hypotheses."""

from types import SimpleNamespace

import pytest

from rarepapers.evaluation.decoding import Decoding
from rarepapers.evaluation.translation import translation_rows
from rarepapers.metrics.translation_scores import Scoring, bleu, tokenised_bleu

# What ids 0 and 1 say, as people read it and as Moses tokens; and the references.
PLAIN = ["An old-fashioned house, a well.", "It is a well-known cat."]
TOKENS = ["An old-fashioned house , a well .", "It is a well-known cat ."]
REFERENCES = ["A new-fashioned house, a well.", "It is a well-known cat."]
SPLIT = [
    ["An old ##AT##-##AT## fashioned house , a well .", "It is a well ##AT##-##AT## known cat ."],
    ["A new ##AT##-##AT## fashioned house , a well .", "It is a well ##AT##-##AT## known cat ."],
]


class Codec:
    """The interface of `data.codec.PairCodec`, for two sentences of one id."""

    def detokenised(self, ids):
        return PLAIN[ids[0]]

    def tokenised(self, ids):
        return TOKENS[ids[0]]

    def words(self, line):
        return line.replace(",", " ,").replace(".", " .")


def test_tokenised_bleu_splits_compounds_of_both_sides():
    pairs = SimpleNamespace(texts=lambda side: REFERENCES)
    corpus = SimpleNamespace(scoring=Scoring("en"))
    rows, texts = translation_rows([[0], [1]], pairs, corpus, Codec(), Decoding(4, 0.6), "test@best", tokenised=True)
    references = [*map(Codec().words, REFERENCES)]
    value = {row["metric"]: row["value"] for row in rows}
    assert texts == PLAIN
    assert value["bleu"] == pytest.approx(bleu(PLAIN, REFERENCES, corpus.scoring).value)
    assert value["bleu_tokenised"] == pytest.approx(tokenised_bleu(*SPLIT, corpus.scoring).value)
    assert value["bleu_tokenised"] != pytest.approx(tokenised_bleu(TOKENS, references, corpus.scoring).value)
    signature = next(row["signature"] for row in rows if row["metric"] == "bleu_tokenised")
    assert signature.startswith("moses|compounds:split|nrefs:1|case:mixed|eff:no|tok:none|smooth:none|")
    assert signature.endswith("|beam:4|length_exponent:0.6|checkpoint:best")
