"""The command `evaluate` on a run of a translation model, as written by training and encoding."""

import json
import shutil

import numpy as np
import pytest
import sacrebleu
from safetensors.numpy import save_file
from tests.evaluation import declared_rows
from tests.evaluation.conftest import TRANSLATION_MODEL

from rarepapers.__main__ import main
from rarepapers.core.errors import EXIT_USER_ERROR
from rarepapers.data.codec import codec_of
from rarepapers.data.pairs.prepared_pairs import load_pairs
from rarepapers.evaluation import translation_run as run_module
from rarepapers.evaluation.pair_scores import score_pairs
from rarepapers.metrics.calibration import log_frequencies
from rarepapers.models.beam_search import translate
from rarepapers.models.building import load_model

SETTINGS = {
    "groups": [{"names": ["high", "mid", "low"], "shares": [0.2, 0.3, 0.5]}],
    "beam": 3,
    "length_exponent": 0.6,
    "tokenised_bleu": True,
    "neighbours": 4,
    "queries": {"rare": 3},
    "alignment": True,
    "alc": [15],
    "calibration_bins": 5,
    "f1_buckets": [1, 2, 10],
    "domains": True,
}
GROUPS = ("high", "mid", "low")
SPLITS = ("test", "domain.second")


def evaluate(root, corpus, settings=SETTINGS, links=None, more=()) -> int:
    arguments = ["--run-folder", root / "run", "--manifest", corpus.folder / "manifest.json", "--device", "cpu"]
    # Without links, the rule passes --links without a value.
    arguments += ["--settings", json.dumps(settings), "--links", *([links] if links else []), *more]
    arguments += ["--metrics", root / "out" / "metrics.json", "--arrays", root / "out" / "arrays.npz"]
    return main(["evaluate", *map(str, arguments)])


def measured(root) -> dict:
    rows = json.loads((root / "out" / "metrics.json").read_text())["metrics"]
    keys = [(row["metric"], row["group"], row["split"]) for row in rows]
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, rows, strict=True))


def best_model(root, corpus):
    return load_model(root / "run" / "model.safetensors", TRANSLATION_MODEL, corpus.types)


def test_rows_are_those_of_the_documentation(translation_run, prepared_pairs, pair_links):
    assert evaluate(translation_run, prepared_pairs, links=pair_links) == 0
    rows = measured(translation_run)
    leave_out = ("fitted_temperature", "temperature_at_bound", "fitted_perplexity", "uniq", "comet")
    expected = declared_rows.expected("translation", SETTINGS, leave_out, domains=["second"])
    assert declared_rows.found(rows, "translation", SETTINGS) == expected
    groups = {
        name: {group for metric, group, _ in rows if metric == name} for name in ("word_f1", "alc_bleu", "alc_chrf")
    }
    assert groups == {"word_f1": {"0", "1", "2-9", "10+"}} | {
        name: {"early", "full"} for name in ("alc_bleu", "alc_chrf")
    }
    assert sum(metric == "cosine_rank_correlation" for metric, *_ in rows) == 3
    assert json.loads((translation_run / "out" / "metrics.json").read_text())["training"]["hash"] == "0123"


def test_bleu_is_of_the_kept_hypotheses(translation_run, prepared_pairs, pair_links):
    evaluate(translation_run, prepared_pairs, links=pair_links)
    rows = measured(translation_run)
    hypotheses = json.loads((translation_run / "out" / "hypotheses.json").read_text())
    assert set(hypotheses) == set(SPLITS)
    codec, model = codec_of(prepared_pairs), best_model(translation_run, prepared_pairs)
    for split in SPLITS:
        pairs = load_pairs(prepared_pairs, split)
        offsets = pairs.source_offsets
        sources = [pairs.source[offsets[i] : offsets[i + 1]] for i in range(len(pairs))]
        expected = [codec.detokenised(ids) for ids in translate(model, sources, 3, 0.6)]
        assert hypotheses[split] == expected
        references = [(pairs.folder / f"{split}.target.txt").read_text().splitlines()]
        scorers = {"bleu": sacrebleu.BLEU(), "chrf": sacrebleu.CHRF(), "chrf++": sacrebleu.CHRF(word_order=2)}
        for metric, scorer in scorers.items():
            found = rows[metric, "", f"{split}@best"]
            assert found["value"] == pytest.approx(scorer.corpus_score(expected, references).score)
            assert found["signature"].startswith(str(scorer.get_signature()))
            assert "|beam:3|length_exponent:0.6|checkpoint:best" in found["signature"]
            assert found["n"] == len(pairs)


def test_a_run_that_repeats_the_reference_scores_100(translation_run, prepared_pairs, pair_links, monkeypatch):
    """Decoding that returns the target has BLEU and chrF of 100, and F1 of 1 in every bucket with words."""

    def oracle(model, pairs, decoding):
        offsets = pairs.target_offsets
        return [pairs.target[offsets[i] : offsets[i + 1] - 1].tolist() for i in range(len(pairs))]

    monkeypatch.setattr(run_module, "decode", oracle)
    evaluate(translation_run, prepared_pairs, links=pair_links)
    rows = measured(translation_run)
    for split in SPLITS:
        assert json.loads((translation_run / "out" / "hypotheses.json").read_text())[split] == load_pairs(
            prepared_pairs, split
        ).texts("target")
        for metric in ("bleu", "chrf", "chrf++", "bleu_tokenised"):
            assert rows[metric, "", f"{split}@best"]["value"] == pytest.approx(100)
        for key, row in rows.items():
            if key[0] == "word_f1" and key[2] == f"{split}@best":
                assert row["value"] == (1 if row["n"] else "nan")


def test_an_untrained_model_predicts_what_its_bias_says(translation_run, prepared_pairs, pair_links):
    """The unigram distribution, and without the bias nothing."""
    evaluate(translation_run, prepared_pairs, links=pair_links)
    rows = measured(translation_run)
    assert rows["calibration_slope", "full", "test@best"]["value"] == pytest.approx(1, abs=0.15)
    assert rows["calibration_slope", "without_bias", "test@best"]["value"] == pytest.approx(0, abs=0.15)


def test_curves_and_observations_become_numbers(translation_run, prepared_pairs, pair_links):
    evaluate(translation_run, prepared_pairs, links=pair_links)
    value = {key: row["value"] for key, row in measured(translation_run).items()}
    # 0 at 0, 2 at 10, 6 at 20: at 15 it is 4.
    assert value["alc_bleu", "full", "valid"] == pytest.approx((10 + 40) / 20)
    assert value["alc_bleu", "early", "valid"] == pytest.approx((10 + 15) / 15)
    assert value["best_validation_chrf", "", "valid"] == 30
    assert value["nearest_to_unigram_step", "", "train"] == 1
    assert value["divergence_at_start", "unigram", "train"] == 3
    norm = np.linalg.norm(log_frequencies(prepared_pairs.counts))
    assert value["output_bias_norm", "change", "train"] == pytest.approx(2 / norm)
    with np.load(translation_run / "out" / "arrays.npz") as arrays:
        assert arrays["curve.bleu.steps"].tolist() == [10, 20]
        assert arrays["curve.bleu.values"].tolist() == [2, 6]
        assert arrays["divergence.unigram"].tolist() == [3, 1, 2]
        assert arrays["output_bias.norm"].tolist() == [10, 12]


def test_arrays_are_those_of_the_documentation(translation_run, prepared_pairs, pair_links):
    snapshot = np.random.default_rng(0).normal(size=(prepared_pairs.types, 8)).astype(np.float16)
    save_file({"step000005": snapshot}, translation_run / "run" / "snapshots.safetensors")
    assert evaluate(translation_run, prepared_pairs, links=pair_links) == 0
    types = prepared_pairs.types
    with np.load(translation_run / "out" / "arrays.npz", allow_pickle=False) as arrays:
        assert {name: arrays[name].shape for name in arrays} == {
            **dict.fromkeys(("vocabulary", "counts", "source_counts"), (types,)),
            "bounds": (2,),
            **dict.fromkeys(("best.svd", "best.pca", "last.svd", "last.pca"), (types, 2)),
            "best.singular_values": (8,),
            "best.neighbour_queries": (3,),
            **dict.fromkeys(("best.neighbours", "best.neighbour_cosines"), (3, 4)),
            "best.query_cosines": (3, types),
            "best.calibration.edges": (6,),
            **{f"best.calibration.{name}": (5,) for name in ("numbers", "places", "full", "without_bias")},
            **{f"curve.{metric}.{name}": (2,) for metric in ("bleu", "chrf") for name in ("steps", "values")},
            **{f"divergence.{name}": (3,) for name in ("steps", "unigram", "uniform", "empirical")},
            **{f"output_bias.{name}": (2,) for name in ("steps", "norm", "divergence")},
            "snapshots.steps": (1,),
            "snapshots.isotropy_sign_free": (1, 3),
            "snapshots.cosine_rare_frequent": (1,),
            "snapshots.inner_product": (1, 3),
            "snapshots.svd": (1, types, 2),
            "snapshots.pca": (1, types, 2),
        }
        assert arrays["best.calibration.numbers"].sum() == prepared_pairs.splits["test"]


def test_evaluation_is_deterministic(translation_run, prepared_pairs, pair_links):
    names = ("metrics.json", "arrays.npz", "hypotheses.json")
    evaluate(translation_run, prepared_pairs, links=pair_links)
    first = [(translation_run / "out" / name).read_bytes() for name in names]
    evaluate(translation_run, prepared_pairs, links=pair_links)
    assert first == [(translation_run / "out" / name).read_bytes() for name in names]


def test_the_mean_of_several_checkpoints_is_called_that(translation_run, prepared_pairs, pair_links):
    evaluate(translation_run, prepared_pairs, links=pair_links)
    before = measured(translation_run)
    path = translation_run / "run" / "training.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"averaged_steps": [5, 10, 20]}))
    evaluate(translation_run, prepared_pairs, links=pair_links)
    after = measured(translation_run)
    assert set(after) == set(before)
    for key, row in after.items():
        assert row["value"] == before[key]["value"]
        assert row["signature"] == before[key]["signature"].replace("checkpoint:best", "checkpoint:mean_of_3")
    assert "|checkpoint:mean_of_3" in after["bleu", "", "test@best"]["signature"]
    assert "checkpoint:last" in after["perplexity", "total", "test@last"]["signature"]


def test_optional_metrics_are_left_out(translation_run, prepared_pairs):
    needed = ("groups", "beam", "length_exponent", "neighbours", "queries")
    settings = {key: SETTINGS[key] for key in needed}
    more = ("--hypotheses", translation_run / "out" / "kept.json")
    assert evaluate(translation_run, prepared_pairs, settings, more=more) == 0
    metrics = {metric for metric, _, _ in measured(translation_run)}
    assert {"bleu", "chrf", "perplexity", "alc_bleu"} <= metrics
    assert not metrics & {"bleu_tokenised", "word_f1", "calibration_slope", "align_similarity"}
    assert set(json.loads((translation_run / "out" / "kept.json").read_text())) == {"test"}
    assert not (translation_run / "out" / "hypotheses.json").exists()


def test_a_last_checkpoint_that_is_the_best_is_scored_once(translation_run, prepared_pairs, pair_links, monkeypatch):
    shutil.copy(translation_run / "run" / "model.safetensors", translation_run / "run" / "last.safetensors")
    splits = []

    def noted(model, pairs, *more, **options):
        splits.append(pairs.split)
        return score_pairs(model, pairs, *more, **options)

    monkeypatch.setattr(run_module, "score_pairs", noted)
    evaluate(translation_run, prepared_pairs, links=pair_links)
    assert sorted(splits) == ["test", "valid"]
    value = {key: row["value"] for key, row in measured(translation_run).items()}
    assert value["perplexity", "total", "test@last"] == value["perplexity", "total", "test@best"]


def test_rare_queries_are_of_the_target_side_where_it_has_rare_types(translation_run, prepared_pairs, pair_links):
    counts = prepared_pairs.counts
    last = int((counts > 0).sum())
    for third, of_target in ((last - 5, True), (last + 10, False)):
        groups = [{"names": list(GROUPS), "bounds": [20, third]}]
        assert evaluate(translation_run, prepared_pairs, SETTINGS | {"groups": groups}, pair_links) == 0
        with np.load(translation_run / "out" / "arrays.npz") as arrays:
            queries = arrays["best.neighbour_queries"]
            assert len(queries) == 3
            assert (queries >= third).all()
            assert ((counts[queries] > 0) == of_target).all()
            assert (counts + prepared_pairs.source_counts)[queries].all()


def test_words_are_found_as_sentencepiece_writes_them(translation_run, prepared_pairs, pair_links):
    word = next(symbol for symbol in prepared_pairs.symbols[10:] if symbol.startswith("▁") and symbol[1:].isalpha())
    assert evaluate(translation_run, prepared_pairs, SETTINGS | {"queries": [word[1:]]}, pair_links) == 0
    with np.load(translation_run / "out" / "arrays.npz") as arrays:
        assert [prepared_pairs.symbols[i] for i in arrays["best.neighbour_queries"]] == [word]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beams": 3}, "unknown key beams"),
        ({"queries": ["xyzzyx"]}, "names 'xyzzyx', which is no type of corpus tiny_pair that occurs in training"),
    ],
)
def test_wrong_translation_settings_are_refused(translation_run, prepared_pairs, pair_links, capsys, change, message):
    assert evaluate(translation_run, prepared_pairs, SETTINGS | change, pair_links) == EXIT_USER_ERROR
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (translation_run / "out" / "metrics.json").exists()


def test_missing_links_and_those_of_another_text_are_refused(translation_run, prepared_pairs, pair_links, capsys):
    assert evaluate(translation_run, prepared_pairs) == EXIT_USER_ERROR
    assert "evaluation.alignment is true, but no links are given; add --links PATH" in capsys.readouterr().err
    short = translation_run / "short.links"
    short.write_text("".join(pair_links.read_text().splitlines(keepends=True)[1:]))
    assert evaluate(translation_run, prepared_pairs, links=short) == EXIT_USER_ERROR
    assert "has links of 199 pairs, but the training split of tiny_pair has 200" in capsys.readouterr().err
