"""The command `evaluate` on a run of a language model, as written by training and encoding."""

import json
import math
import shutil

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.evaluation import declared_rows
from tests.evaluation.conftest import LANGUAGE_MODEL

from rarepapers.__main__ import main
from rarepapers.core.errors import EXIT_USER_ERROR
from rarepapers.data.codec import codec_of
from rarepapers.evaluation import language
from rarepapers.evaluation.text_scores import score
from rarepapers.models.building import load_model
from raretok.frequency_groups import bounds

SETTINGS = {
    "groups": [
        {"names": ["freq", "med", "rare"], "shares": [0.3, 0.5, 0.2]},
        {"names": ["freq", "med", "rare"], "bounds": [20, 50], "suffix": "@index"},
    ],
    "block": 16,
    "window": 11,
    "prefixes": {"number": 6, "length": 5, "continuation": 14, "examples": 5},
    "neighbours": 4,
    "queries": {"rare": 3},
    "word_similarity": {"MEN": "men/pairs"},
}
GROUPS = ("freq", "med", "rare")


def evaluate(root, corpus, settings=SETTINGS, similarity=("MEN=pairs.tsv",)) -> int:
    arguments = ["--run-folder", root / "run", "--manifest", corpus.folder / "manifest.json", "--device", "cpu"]
    arguments += ["--settings", json.dumps(settings), "--word-similarity"]
    arguments += [pair.replace("=", f"={root}/") for pair in similarity]
    arguments += ["--metrics", root / "out" / "metrics.json", "--arrays", root / "out" / "arrays.npz"]
    return main(["evaluate", *map(str, arguments)])


def measured(root) -> dict:
    rows = json.loads((root / "out" / "metrics.json").read_text())["metrics"]
    keys = [(row["metric"], row["group"], row["split"]) for row in rows]
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, rows, strict=True))


def test_rows_are_those_of_the_documentation(language_run, prepared):
    assert evaluate(language_run, prepared) == 0
    rows = measured(language_run)
    fitted = ("fitted_temperature", "temperature_at_bound", "fitted_perplexity")
    leave_out = [*fitted, "fitted_perplexity_within", "fitted_group_mass"]
    if prepared.tokenizer["name"] != "bpe":
        leave_out += ["word_similarity_with_space", "word_similarity_coverage_with_space"]
    expected = declared_rows.expected("language", SETTINGS, leave_out)
    # Its mean probability is measured for the first set of groups alone.
    expected -= {("group_mass", f"{name}@index", "test@best") for name in GROUPS}
    assert declared_rows.found(rows, "language", SETTINGS) == expected
    assert {group for metric, group, _ in rows if metric == "generated_uniq"} == {
        "mean",
        *(f"example{i}" for i in range(1, 6)),
    }
    first = ",".join(map(str, bounds(SETTINGS["groups"][0], prepared.counts)))
    signature = rows["perplexity", "rare", "test@best"]["signature"]
    assert f"|groups:shares=0.3,0.5,0.2|bounds:{first}|block:16|window:11|checkpoint:best|" in signature
    assert "|bounds:20,50|" in rows["group_types", "rare@index", "train@data"]["signature"]


def test_numbers_agree_with_each_other(language_run, prepared):
    evaluate(language_run, prepared)
    rows = measured(language_run)
    value = {key: row["value"] for key, row in rows.items()}
    for suffix in ("", "@index"):
        groups = [name + suffix for name in GROUPS]
        for split in ("train", "valid", "test"):
            assert sum(value["group_mass", g, f"{split}@data"] for g in groups) == pytest.approx(1)
        assert sum(value["group_types", g, "train@data"] for g in groups) == prepared.types
        # The masses reproduce the totals.
        for metric in ("perplexity", "perplexity_plain"):
            total = sum(
                value["group_mass", g, "test@data"] * math.log(value[metric, g, "test@best"])
                for g in groups
                if rows[metric, g, "test@best"]["n"]
            )
            assert math.exp(total) == pytest.approx(value[metric, "total", "test@best"], rel=1e-12)
        for metric, split in (("uniq", "test@best"), ("uniq_human", "test@data")):
            assert sum(value[metric, g, split] for g in groups) == value[metric, "total", split]
    test = np.asarray(prepared.tokens("test"), dtype=np.int64)
    assert value["uniq_human", "total", "test@data"] == len(set(test.tolist()))
    assert rows["perplexity", "total", "test@best"]["n"] == len(test)
    assert value["perplexity", "total", "test@best"] != value["perplexity_plain", "total", "test@best"]
    uniq = [value["generated_uniq", f"example{i}", "test@best"] for i in range(1, 6)]
    assert all(1 <= count <= 14 for count in uniq)


def test_arrays_are_those_of_the_documentation(language_run, prepared):
    observations = {"rare_types.sizes": np.arange(7), "rare_alignment.mean": np.ones(2), "gradient_norms.steps": 3.0}
    np.savez(language_run / "run" / "observations.npz", **observations)
    snapshot = np.random.default_rng(0).normal(size=(prepared.types, 8)).astype(np.float16)
    save_file({"step000005": snapshot}, language_run / "run" / "snapshots.safetensors")
    assert evaluate(language_run, prepared) == 0
    types = prepared.types
    with np.load(language_run / "out" / "arrays.npz", allow_pickle=False) as arrays:
        assert {name: arrays[name].shape for name in arrays} == {
            "vocabulary": (types,),
            "counts": (types,),
            "bounds": (2,),
            "best.offsets": (13,),
            "best.offset_perplexities": (13, 4),
            "best.offset_perplexities_valid": (13, 4),
            "best.offset_uniq": (13, 4),
            "best.svd": (types, 2),
            "best.pca": (types, 2),
            "last.svd": (types, 2),
            "last.pca": (types, 2),
            "best.singular_values": (8,),
            "best.neighbour_queries": (3,),
            "best.neighbours": (3, 4),
            "best.neighbour_cosines": (3, 4),
            "best.generated.prefixes": (5,),
            "best.generated.texts": (5,),
            "snapshots.steps": (1,),
            "snapshots.isotropy_sign_free": (1, 3),
            "snapshots.cosine_rare_frequent": (1,),
            "snapshots.inner_product": (1, 3),
            "snapshots.svd": (1, types, 2),
            "snapshots.pca": (1, types, 2),
            "rare_types.sizes": (7,),
            "rare_alignment.mean": (2,),
        }
        assert arrays["vocabulary"].tolist() == list(prepared.symbols)
        assert (prepared.counts[arrays["best.neighbours"]] > 0).all()
        assert (arrays["best.neighbours"] > 3).all()
        assert (arrays["best.neighbour_queries"] >= arrays["bounds"][1]).all()
        first = codec_of(prepared).text(prepared.tokens("test")[:5].tolist())
        assert arrays["best.generated.prefixes"][0] == first


def test_evaluation_is_deterministic(language_run, prepared):
    evaluate(language_run, prepared)
    names = ("metrics.json", "arrays.npz")
    first = [(language_run / "out" / name).read_bytes() for name in names]
    evaluate(language_run, prepared)
    assert first == [(language_run / "out" / name).read_bytes() for name in names]


def test_a_last_checkpoint_that_is_the_best_is_scored_once(language_run, prepared, monkeypatch):
    shutil.copy(language_run / "run" / "model.safetensors", language_run / "run" / "last.safetensors")
    passes = []
    monkeypatch.setattr(language, "score", lambda *a, **k: passes.append(a[3]) or score(*a, **k))
    evaluate(language_run, prepared)
    assert passes == [0, 11, 0]
    value = {key: row["value"] for key, row in measured(language_run).items()}
    for metric in ("perplexity_plain", "uniq"):
        for group in (*GROUPS, "total", "rare@index"):
            assert value[metric, group, "test@last"] == value[metric, group, "test@best"]


def test_a_fitted_temperature_adds_rows_and_changes_none(language_run, prepared):
    evaluate(language_run, prepared)
    before = measured(language_run)
    evaluate(language_run, prepared, SETTINGS | {"fit_temperature": True})
    after = measured(language_run)
    added = after.keys() - before.keys()
    assert {key: after[key] for key in before} == before
    assert {metric for metric, _, _ in added} == {
        "fitted_temperature",
        "temperature_at_bound",
        "fitted_perplexity",
        "fitted_perplexity_within",
        "fitted_group_mass",
    }
    temperature = after["fitted_temperature", "", "valid@best"]["value"]
    model = load_model(language_run / "run" / "model.safetensors", LANGUAGE_MODEL, prepared.types)
    for split in ("valid", "test"):
        tokens = np.asarray(prepared.tokens(split), dtype=np.int64)
        nll = score(model, tokens, 16, 0, 2, temperature=temperature).tempered.nll
        found = after["fitted_perplexity", "total", f"{split}@best"]["value"]
        assert found == pytest.approx(math.exp(nll.mean()), rel=1e-12)


def test_pieces_of_words_are_those_without_a_space(language_run, prepared):
    evaluate(language_run, prepared)
    rows = measured(language_run)
    coverage = rows["word_similarity_coverage", "MEN", "weights@best"]
    words = {word for line in (language_run / "pairs.tsv").read_text().splitlines() for word in line.split("\t")[:2]}
    codec = codec_of(prepared)
    assert coverage["n"] == len(words)
    assert coverage["value"] == pytest.approx(np.mean([3 not in codec.ids(word) for word in words]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"windows": 3}, "unknown key windows"),
        ({"window": 16}, "evaluation.window is 16; it must be smaller than block, 16"),
        (
            {"groups": [{"names": list(GROUPS)}]},
            "key groups.0.shares or groups.0.bounds or groups.0.frequency or groups",
        ),
        ({"groups": [{"names": list(GROUPS), "bounds": [5, 10**6]}]}, "one of them is empty"),
        (
            {"queries": ["xyzzyx"]},
            "names 'xyzzyx', which is no type of corpus tiny that occurs in training; choose",
        ),
        ({"word_similarity": {"RW": "rw"}}, "evaluation.word_similarity names RW, whose file is not given"),
        ({"block": 17}, "evaluation.block is 17, but the model reads 16 tokens (model.context)"),
        ({"prefixes": SETTINGS["prefixes"] | {"number": 5000}}, "too few for 5000 prefixes of 5 (evaluation.prefixes)"),
    ],
)
def test_wrong_settings_are_refused(language_run, prepared, capsys, change, message):
    assert evaluate(language_run, prepared, SETTINGS | change) == EXIT_USER_ERROR
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (language_run / "out" / "metrics.json").exists()


@pytest.mark.parametrize(
    ("similarity", "message"),
    [
        (("MEN=absent.tsv",), "the word pairs of MEN, does not exist; download it"),
        (("MEN",), "--word-similarity is 'MEN'; it must be NAME=PATH"),
        ((), "--word-similarity MEN=PATH"),
    ],
)
def test_missing_word_pairs_are_refused(language_run, prepared, capsys, similarity, message):
    assert evaluate(language_run, prepared, similarity=similarity) == EXIT_USER_ERROR
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_test_split_shorter_than_a_block_is_refused(language_run, prepared, capsys):
    record = language_run / "run" / "training.json"
    record.write_text(record.read_text().replace('"context": 16', '"context": 4096'))
    assert prepared.splits["test"] < 4096
    assert evaluate(language_run, prepared, SETTINGS | {"block": 4096}) == EXIT_USER_ERROR
    error = capsys.readouterr().err
    assert "the test split of corpus tiny has" in error
    assert "fewer than one block (evaluation.block: 4096); take a smaller block or a longer text" in error
    assert error.count("\n") == 1
