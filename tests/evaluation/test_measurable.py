"""Data kept for later metrics: precision and size."""

import numpy as np
import pytest

from rarepapers.core.files import read_arrays
from rarepapers.evaluation import language, measurable
from rarepapers.evaluation.remeasure import OF_CHANCE, TOLERANCE
from raretok.metrics import ranking
from raretok.metrics.group_statistics import Groups, group_perplexities

PIECES = 610_000  # of the test and validation text of WikiText-2, in 7,792 types
TYPES, WIDTH, TOKENS = 33_280, 128, 463_000  # words of WikiText-2 at scale small, its test and validation text
GROUPS = Groups(("high", "mid", "low"), (4531, 13637), TYPES)


@pytest.fixture(scope="module")
def words():
    """An output matrix of words, whose rare rows share a direction, and scores of a text: targets, nll, ranks."""
    rng = np.random.default_rng(0)
    spread = np.linspace(1, 0.3, WIDTH)
    matrix = rng.normal(size=(TYPES, WIDTH)) * spread * rng.uniform(0.7, 1.5, (TYPES, 1)) / 10
    matrix += np.linspace(0, 0.6, TYPES)[:, None] * spread / np.linalg.norm(spread)
    share = 1 / np.arange(10, TYPES + 10)
    targets = rng.choice(TYPES, TOKENS, p=share / share.sum())
    nll = rng.gamma(1.3, 2, TOKENS) + targets / TYPES * 6
    ranks = np.exp(nll * rng.uniform(0.3, 1, TOKENS)).astype(np.int64).clip(1, TYPES)
    return matrix, targets, nll, ranks


@pytest.fixture(scope="module")
def packed(words):
    matrix, targets, nll, ranks = words
    half = TOKENS // 2
    kept = measurable.pack_matrices({"best.output": matrix})
    for split, part in (("test", slice(half, None)), ("valid", slice(half))):
        kept |= measurable.pack_tokens(f"best.{split}", targets[part], nll[part], TYPES, ranks[part])
    return kept


def test_a_run_of_scale_small_keeps_at_most_3_megabytes(packed, tmp_path):
    measurable.save_arrays(tmp_path / "measurable.npz", packed)
    assert (tmp_path / "measurable.npz").stat().st_size < 3_000_000
    again = read_arrays(tmp_path / "measurable.npz")
    assert all(np.array_equal(again[name], packed[name]) for name in packed)


@pytest.mark.parametrize(
    ("types", "width", "matrices", "tokens"),
    [(7792, 128, 1, PIECES), (8000, 256, 2, 32_000)],
    ids=["pieces of WikiText-2", "natural_bias on Multi30k"],
)
def test_runs_of_other_sizes_keep_at_most_3_megabytes(tmp_path, types, width, matrices, tokens):
    """The values that compress worst: normal weights, evenly spread likelihoods and ranks."""
    rng = np.random.default_rng(0)
    names = ("best.output", "best.input")[:matrices]
    kept = measurable.pack_matrices({name: rng.normal(size=(types, width)) for name in names})
    scores = rng.integers(types, size=tokens), rng.uniform(0, 1, tokens) ** 2 * 20, rng.integers(1, types, tokens)
    kept |= measurable.pack_tokens("best.test", scores[0], scores[1], types, scores[2])
    kept |= measurable.pack_tokens("best.test.without_bias", scores[0], scores[1], types) if matrices > 1 else {}
    measurable.save_arrays(tmp_path / "measurable.npz", kept)
    assert 900_000 < (tmp_path / "measurable.npz").stat().st_size < 3_000_000


@pytest.mark.parametrize(("kind", "error"), [("coded", 0.089), ("float16", 2.4e-4)])
def test_metrics_of_a_matrix_are_within_the_tolerance(words, monkeypatch, kind, error):
    matrix = words[0][::5]
    groups = Groups(GROUPS.names, (906, 2727), len(matrix))
    counts = 1_000_000 // np.arange(1, len(matrix) + 1)
    monkeypatch.setattr(measurable, "MATRIX_BYTES", 1 if kind == "coded" else 2 * matrix.size)
    kept = measurable.pack_matrices({"best.output": matrix})
    again = measurable.unpack_matrix(kept, "best.output")
    assert (np.linalg.norm(again - matrix, axis=1) / np.linalg.norm(matrix, axis=1)).mean() < error * 1.02
    (before, _), (after, _) = (language.weight_rows(w, counts, [groups], "best") for w in (matrix, again))
    for one, other in zip(before, after, strict=True):
        if one["metric"] in OF_CHANCE:
            continue
        tolerance = TOLERANCE[kind]
        assert other["value"] == pytest.approx(one["value"], rel=tolerance, abs=tolerance / 10), one


def test_metrics_of_tokens_are_within_the_tolerance(words, packed):
    half = TOKENS // 2
    targets, nll, ranks = (values[half:] for values in words[1:])
    again = measurable.unpack_tokens(packed, "best.test")
    assert np.array_equal(again.targets, np.sort(targets))
    expected, numbers = group_perplexities(nll, targets, GROUPS)
    found, again_numbers = group_perplexities(again.nll, again.targets, GROUPS)
    assert np.array_equal(numbers, again_numbers)
    assert found[3] == pytest.approx(expected[3], rel=1e-12)
    assert found == pytest.approx(expected, rel=TOLERANCE["tokens"])
    order = np.argsort(targets, kind="stable")
    few = ranks[order] <= measurable.EXACT_RANKS
    assert np.array_equal(again.ranks[few], ranks[order][few])
    assert np.abs(again.ranks / ranks[order] - 1).max() < 0.03
    assert ranking.recall(again.ranks, 5) == ranking.recall(ranks, 5)
    assert ranking.mean_reciprocal_rank(again.ranks) == pytest.approx(ranking.mean_reciprocal_rank(ranks), rel=1e-4)


def test_non_finite_values_are_kept():
    nll = np.array([0.0, 1.0, np.inf, 2.0])
    again = measurable.unpack_tokens(measurable.pack_tokens("a", np.array([3, 1, 1, 0]), nll, 4), "a").nll
    assert again.tolist() == [2.0, 1.0, np.inf, 0.0]
    matrix = np.eye(3, 2000)
    matrix[1, 5] = np.nan
    matrix[2] = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurable, "MATRIX_BYTES", 1)
        again = measurable.unpack_matrix(measurable.pack_matrices({"a": matrix}), "a")
    assert again[0] == pytest.approx(matrix[0], abs=1e-3)
    assert np.isnan(again[1]).all()
    assert not again[2].any()


@pytest.mark.parametrize("types", [2, 130, 256, 257, 300, 33_280])
def test_every_rank_has_a_level_near_it(types):
    levels = measurable.rank_levels(types)
    assert len(levels) <= 256
    assert levels[0] == 1
    assert levels[-1] == types
    assert (np.diff(levels) > 0).all()
