"""Paired tests of two systems' translations, compared with sacrebleu and on cases with known answers."""

import itertools
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from rarepapers.metrics import translation_tests
from rarepapers.metrics.translation_scores import Scoring
from rarepapers.metrics.translation_tests import SEED_VARIABLE, TESTS, compare

ENGLISH = Scoring("en")

WORDS = np.array(["the", "a", "cat", "dog", "sat", "ran", "on", "under", "mat", "house", "green", "old", "."])


@pytest.fixture(scope="module")
def texts():
    """References, and translations that lose a tenth and two fifths of their words."""
    rng = np.random.default_rng(0)
    references = [" ".join(rng.choice(WORDS, rng.integers(5, 12))) for _ in range(80)]

    def worn(share):
        return [" ".join(word for word in line.split() if rng.random() > share) for line in references]

    return references, worn(0.1), worn(0.4)


def found(comparisons):
    return {(one.metric, one.test): one for one in comparisons}


def test_values_equal_sacrebleus(texts):
    references, good, bad = texts
    results = found(compare(good, bad, references, ENGLISH, samples=100))
    assert set(results) == {(m, t) for m in ("bleu", "chrf") for t in ("bootstrap", "randomisation")}
    for metric, scorer in (("bleu", BLEU()), ("chrf", CHRF())):
        for test in ("bootstrap", "randomisation"):
            one = results[metric, test]
            assert one.first == pytest.approx(scorer.corpus_score(good, [references]).score)
            assert one.second == pytest.approx(scorer.corpus_score(bad, [references]).score)
            assert "version:" in one.signature
    assert "|bs:100|" in results["bleu", "bootstrap"].signature
    assert "|ar:100|" in results["bleu", "randomisation"].signature


def test_values_intervals_and_p_equal_those_of_the_sacrebleu_program(texts, tmp_path):
    references, good, _ = texts
    # Nearly as good, so that the probability is neither small nor one, with too many differing sentences to take all.
    other = [line.rpartition(" ")[0] if i % 3 == 0 else line for i, line in enumerate(good)]
    other = [
        reference if i % 3 == 1 else line for i, (line, reference) in enumerate(zip(other, references, strict=True))
    ]
    for name, lines in (("references", references), ("first", good), ("second", other)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    results = found(compare(good, other, references, ENGLISH, samples=100, seed=7))
    for test, option in (("bootstrap", "bs"), ("randomisation", "ar")):
        command = [sys.executable, "-m", "sacrebleu", "references", "-i", "first", "second", "-m", "bleu", "chrf"]
        command += [f"--paired-{option}", f"--paired-{option}-n", "100", "-f", "latex", "-w", "4"]
        environment = os.environ | {SEED_VARIABLE: "7"}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        # A row per system, a column per metric: score, mean and half width of the bootstrap interval, p of the second.
        printed = [line.split("&")[1:] for line in done.stdout.splitlines() if "first &" in line or "second &" in line]
        for metric, *columns in zip(("bleu", "chrf"), *printed, strict=True):
            one = results[metric, test]
            first, second = ([float(number) for number in re.findall(r"\d+\.\d+", column)] for column in columns)
            expected = [[one.first], [one.second, one.p]]
            if test == "bootstrap":
                for numbers, (low, high) in zip(expected, one.intervals, strict=True):
                    numbers[1:1] = [(low + high) / 2, (high - low) / 2]
            assert first == pytest.approx(expected[0], abs=1e-4)
            assert second == pytest.approx(expected[1], abs=1e-4)
            assert 0.02 < one.p < 0.98


def test_only_a_true_difference_is_significant(texts):
    references, good, bad = texts
    for one in compare(good, bad, references, ENGLISH, samples=200):
        assert one.p < 0.01
    for one in compare(good, good, references, ENGLISH, samples=200):
        assert one.first == one.second
        assert one.p == 1


def test_bootstrap_intervals_contain_the_value(texts):
    references, good, bad = texts
    results = found(compare(good, bad, references, ENGLISH, samples=200))
    boot = results["bleu", "bootstrap"]
    for value, (lower, upper) in zip((boot.first, boot.second), boot.intervals, strict=True):
        assert lower < value < upper
    assert results["bleu", "randomisation"].intervals is None


def test_the_seed_determines_the_result(texts, monkeypatch):
    references, good, _ = texts
    # Good and bad sentences alternate between the systems, so both are equally good overall.
    other = [line.rpartition(" ")[0] if i % 9 == 0 else line for i, line in enumerate(references)]
    other = [b if i % 2 else a for i, (a, b) in enumerate(zip(good, other, strict=True))]
    good = [a if i % 2 else b for i, (a, b) in enumerate(zip(good, references, strict=True))]
    monkeypatch.delenv(SEED_VARIABLE, raising=False)
    first = compare(good, other, references, ENGLISH, ["randomisation"], 100, seed=1)
    assert compare(good, other, references, ENGLISH, ["randomisation"], 100, seed=1) == first
    assert [one.p for one in compare(good, other, references, ENGLISH, ["randomisation"], 100, seed=2)] != [
        one.p for one in first
    ]
    assert SEED_VARIABLE not in os.environ


def test_the_default_number_of_samples_is_sacrebleus():
    assert {
        name: PairedTest._DEFAULT_SAMPLES[kind] for name, kind in (("bootstrap", "bs"), ("randomisation", "ar"))
    } == TESTS


def all_exchanges(metric, first, second, references):
    """p by the definition: the share of all exchanges of sentences whose difference is at least as large."""
    differ = [i for i, (one, other) in enumerate(zip(first, second, strict=True)) if one != other]
    gaps = []
    for swapped in itertools.product((False, True), repeat=len(differ)):
        ours, theirs = list(first), list(second)
        for i, swap in zip(differ, swapped, strict=True):
            if swap:
                ours[i], theirs[i] = theirs[i], ours[i]
        scores = [metric.corpus_score(lines, [references]).score for lines in (ours, theirs)]
        gaps.append(abs(scores[0] - scores[1]))
    return sum(gap >= gaps[0] * (1 - 1e-9) for gap in gaps) / len(gaps)


# Which of 40 sentences are worse in the first system, and in the second
WORSE = {
    "none": ((), ()),
    "one": ((), (3,)),
    "two": ((), (3, 30)),
    "four of one": ((), (3, 10, 20, 30)),
    "two of each": ((3, 10), (20, 30)),
    "three and one": ((3,), (10, 20, 30)),
    "eight": ((1, 5), (7, 9, 11, 13, 15, 17)),
}


@pytest.mark.parametrize("case", WORSE)
@pytest.mark.parametrize("sentences", [40, 31])
def test_randomisation_of_few_differing_sentences_counts_all_exchanges(case, sentences):
    references = [f"the cat number {i} sat on the mat today with {7 * i} mice" for i in range(sentences)]
    first, second = (
        [
            f"a dog number {i} slept on the mat today with {7 * i} mice" if i in worse else line
            for i, line in enumerate(references)
        ]
        for worse in WORSE[case]
    )
    for one, metric in zip(
        compare(first, second, references, ENGLISH, ["randomisation"], 50), (BLEU(), CHRF()), strict=True
    ):
        assert one.p == pytest.approx(all_exchanges(metric, first, second, references), abs=1e-12)
        assert "|ar:all|" in one.signature
    if case == "one":
        assert one.p == 1
    if case == "four of one":
        assert one.p == 0.125


@pytest.mark.parametrize("sentences", [1, 2])
def test_one_or_two_sentences_show_nothing(sentences):
    references = ["the cat sat on the mat", "a dog ran under the house"][:sentences]
    worse = ["the cat sat on a mat", "the dog ran on the house"][:sentences]
    for one in compare(references, worse, references, ENGLISH):
        assert one.p >= 0.5 or (one.test, sentences) == ("bootstrap", 2)


def test_random_exchanges_agree_with_all_of_them(monkeypatch):
    """Twelve differing sentences, of which two systems win some: ties and a p that is neither small nor one."""
    references = [f"the cat number {i} sat on the mat today with {7 * i} mice" for i in range(40)]
    first, second = (
        [f"a dog number {i} slept on the mat today" if i in worse else line for i, line in enumerate(references)]
        for worse in ((2, 4, 6, 8), (1, 3, 5, 7, 9, 11, 13, 15))
    )
    exact = compare(first, second, references, ENGLISH, ["randomisation"])
    monkeypatch.setattr(translation_tests, "MOST_ENUMERATED", 0)
    for one, other in zip(compare(first, second, references, ENGLISH, ["randomisation"]), exact, strict=True):
        assert 0.1 < other.p < 0.9
        # Four standard errors of 10,000 trials
        assert one.p == pytest.approx(other.p, abs=4 * (0.25 / 10_000) ** 0.5)
        assert "|ar:10000|" in one.signature
