"""F1 of words by training frequency, compared with values by hand and with compare-mt."""

import math
import random
from collections import Counter

import pytest

from rarepapers.metrics.translation_scores import Scoring
from rarepapers.metrics.word_f1 import bucket_labels, training_frequencies, word_f1

ENGLISH = Scoring("en")


def test_buckets_by_hand():
    frequencies = training_frequencies(["the cat sat.", "the dog, the mat.", "the cat"], ENGLISH)
    assert frequencies["the"] == 4
    assert frequencies["."] == 2  # split off
    hypotheses = ["the the cat ran .", "a dog"]
    references = ["the cat sat on the mat .", "the dog"]
    rare, once, few, many = word_f1(hypotheses, references, frequencies, [1, 2, 4], ENGLISH)
    assert [bucket.label for bucket in (rare, once, few, many)] == ["0", "1", "2-3", "4+"]
    # Never seen: ran, a | on.
    assert (rare.matched, rare.given, rare.wanted) == (0, 2, 1)
    assert rare.f1 == 0
    # Once: dog | sat, mat, dog.
    assert (once.matched, once.given, once.wanted) == (1, 1, 3)
    assert once.f1 == pytest.approx(2 * 1 * (1 / 3) / (1 + 1 / 3))
    # 2-3 times: cat and the full stop, on both sides.
    assert few.f1 == 1
    # "the": twice in hypothesis and reference of the first sentence, once in the reference of the second.
    assert (many.matched, many.given, many.wanted) == (2, 2, 3)


def as_compare_mt(hypotheses, references, frequencies, cutoffs):
    """compare-mt's loop (`WordBucketer.calc_bucketed_matches`): a word of the hypothesis takes one of the reference."""

    def bucket(word):
        return sum(frequencies.get(word, 0) >= cutoff for cutoff in cutoffs)

    counts = [[0, 0, 0] for _ in range(len(cutoffs) + 1)]
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        left = reference.split()
        for word in left:
            counts[bucket(word)][2] += 1
        for word in hypothesis.split():
            counts[bucket(word)][1] += 1
            if word in left:
                left.remove(word)
                counts[bucket(word)][0] += 1
    return counts


def test_buckets_equal_compare_mts():
    rng = random.Random(0)
    words = [f"w{i}" for i in range(30)]
    frequencies = {word: i * i for i, word in enumerate(words[:25])}
    sides = [[" ".join(rng.choices(words, k=rng.randint(1, 12))) for _ in range(60)] for _ in range(2)]
    cutoffs = [1, 2, 3, 4, 5, 10, 100, 1000]
    found = word_f1(*sides, Counter(frequencies), cutoffs, ENGLISH)
    expected = as_compare_mt(*sides, frequencies, cutoffs)
    assert [[one.matched, one.given, one.wanted] for one in found] == expected
    for one in found:
        if one.matched:
            precision, recall = one.matched / one.given, one.matched / one.wanted
            assert one.f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_equal_texts_score_1_and_empty_buckets_are_left_out():
    text = ["one two", "three"]
    buckets = word_f1(text, text, training_frequencies(["one two two"], ENGLISH), [1, 2, 10], ENGLISH)
    assert [bucket.f1 for bucket in buckets[:3]] == [1, 1, 1]
    assert math.isnan(buckets[3].f1)


def test_bucket_labels():
    assert bucket_labels([1, 2, 5, 10, 100, 1000]) == ["0", "1", "2-4", "5-9", "10-99", "100-999", "1000+"]
    assert bucket_labels([0, 3]) == ["0-2", "3+"]
    assert bucket_labels([0]) == ["0+"]


def test_unequal_numbers_of_sentences_are_refused():
    with pytest.raises(ValueError, match="zip"):
        word_f1(["a"], ["a", "b"], {"a": 1}, [1], ENGLISH)


def test_words_are_those_of_bleu_in_the_corpus():
    chinese = training_frequencies(["天气很好"], Scoring("zh"))
    assert chinese == Counter("天气很好")
    assert training_frequencies(["The cat"], Scoring("en", lowercase=True))["the"] == 1
    (bucket,) = word_f1(["The"], ["the"], Counter(), [0], Scoring("en", lowercase=True))
    assert bucket.f1 == 1
