"""Every metric of freshly trained runs, against an independent computation that shares no code with the package."""

from collections import Counter

import pytest
from tests.evaluation import test_evaluate_language as of_language
from tests.evaluation import test_evaluate_translation as of_translation
from tests.evaluation.second_route import compare, measure
from tests.training.conftest import LANGUAGE_SETTINGS, TRANSLATION_SETTINGS, run_of

from rarepapers.training.loop import Options, train

# Forward passes, planes and AlignSim's products are float32 in the package and float64 here.
NEAR = 1e-4


@pytest.fixture(autouse=True)
def no_signals(monkeypatch):
    """Training in this process must not take over pytest's Ctrl-C."""
    monkeypatch.setattr("rarepapers.training.loop.StopFlag", lambda: type("Never", (), {"signal": None})())


def trained(root, corpus, settings, **changes):
    train(run_of(settings, **changes), corpus, root / "run", root / "state", Options())


def differences(root, corpus, links=None, pairs=None):
    """Numbers that differ by more than rounding, and those that are missing in the independent computation."""
    for name in ("metrics.json", "arrays.npz", "hypotheses.json"):
        if (root / "out" / name).exists():
            (root / "out" / name).rename(root / "run" / name)
    found, arrays = measure(root / "run", corpus.folder, links, pairs)
    distances, lacking = compare(root / "run", found, arrays)
    return {key: apart for key, apart in distances.items() if not apart < NEAR}, lacking, found


@pytest.mark.parametrize("untied", [False, True])
def test_a_language_run(prepared, language_texts, tmp_path, untied):
    trained(tmp_path, prepared, LANGUAGE_SETTINGS, model={"context": 16, "tied": not untied})
    words = language_texts[1]
    pairs = [f"{a}\t{b}\t{i % 7}\n" for i, (a, b) in enumerate(zip(words, words[3:], strict=False))]
    (tmp_path / "pairs.tsv").write_text("".join(pairs))
    assert of_language.evaluate(tmp_path, prepared) == 0
    apart, lacking, found = differences(tmp_path, prepared, pairs={"MEN": tmp_path / "pairs.tsv"})
    assert not apart
    assert not lacking
    assert found["perplexity", "total", "test@best"] < 0.7 * prepared.types  # it has learnt


@pytest.mark.parametrize("tying", ["encoder_decoder", "three_way", "none"])
def test_a_translation_run(prepared_pairs, pair_links, tmp_path, tying):
    changes = {"model": {"tying": tying, "width": 32, "dropout": 0.0}, "training": {"steps": 120, "batch_tokens": 200}}
    trained(tmp_path, prepared_pairs, TRANSLATION_SETTINGS, **changes)
    words = Counter((prepared_pairs.folder / "train.target.txt").read_text().split())
    # Buckets that begin with the frequencies of words that are often translated.
    buckets = sorted({number for _, number in words.most_common(12)[::4]})
    settings = of_translation.SETTINGS | {"f1_buckets": buckets}
    assert of_translation.evaluate(tmp_path, prepared_pairs, settings, pair_links) == 0
    apart, lacking, found = differences(tmp_path, prepared_pairs, pair_links)
    assert not apart
    assert not lacking
    assert {value for key, value in found.items() if key[0] == "same_translations"} == {1.0}
    assert min(found["bleu", "", "test@best"], found["word_f1", f"{buckets[-1]}+", "test@best"]) > 0  # it has learnt
