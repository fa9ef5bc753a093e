"""Evaluation of a character model, compared with one position at a time."""

import math

import numpy as np
import pytest
import torch
from tests.evaluation import declared_rows

from rarepapers.core.errors import UserError
from rarepapers.evaluation import characters
from rarepapers.evaluation.characters import evaluate_checkpoint, score, score_languages, scored_positions, text_metrics
from raretok.metrics.isotropy import EIGENVECTORS

SYMBOLS = list("!AaBb")
SETTINGS = {"batch_size": 2, "drop_incomplete": True, "examples": 64, "neighbours": 3}


class Bigram(torch.nn.Module):
    """A stand-in with the decoder's interface, whose hidden vector counts the earlier tokens of the block.

    Its logits depend on all earlier positions of the block, so that a wrong cut into blocks shows.
    """

    def __init__(self, vocabulary=10, width=4, tied=True):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.input_weight = torch.randn(vocabulary, width, generator=generator)
        self.output_weight = self.input_weight if tied else torch.randn(vocabulary, width, generator=generator)

    def forward(self, ids):
        return self.input_weight[ids].cumsum(1)

    def logits(self, hidden):
        return hidden @ self.output_weight.T


def text(length: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 5, length).astype(np.uint8)


def literal_scores(model: Bigram, ids: list[int], context: int, count: int) -> list[tuple[float, int, float]]:
    """NLL, rank and tail mass of the first `count` predictions, position by position."""
    found = []
    w, v = model.input_weight.double(), model.output_weight.double()
    for position in range(count):
        block = position // context * context
        hidden = sum(w[ids[i]] for i in range(block, position + 1))
        logits = (v @ hidden).tolist()
        total = math.log(math.fsum(math.exp(z) for z in logits))
        target = ids[position + 1]
        rank = 1 + sum(z > logits[target] for z in logits)
        tail = math.fsum(math.exp(z - total) for z in sorted(logits)[:-5])
        found.append((total - logits[target], rank, tail))
    return found


def evaluated(model, ids, symbols, context, settings, checkpoint):
    ids = np.asarray(ids, dtype=np.int64)
    scored = score_languages(model, ids, len(symbols), context, settings)
    counts = np.bincount(ids, minlength=len(symbols))
    return evaluate_checkpoint(model, ids, symbols, counts, context, settings, checkpoint, scored)


@pytest.mark.parametrize(
    ("length", "context", "batch", "drop", "expected"),
    [
        (111_540, 64, 12, True, 111_360),
        (111_540, 64, 12, False, 111_539),
        (25, 4, 3, True, 24),
        (24, 4, 3, True, 12),
        (13, 4, 3, True, 12),
        (12, 4, 3, False, 11),
        (2, 4, 3, False, 1),
    ],
)
def test_which_positions_are_scored(length, context, batch, drop, expected):
    assert scored_positions(length, context, SETTINGS | {"batch_size": batch, "drop_incomplete": drop}) == expected


@pytest.mark.parametrize(("length", "drop"), [(12, True), (1, False), (0, True)])
def test_a_text_shorter_than_a_batch_is_refused(length, drop):
    with pytest.raises(UserError, match="one evaluation batch needs"):
        scored_positions(length, 4, SETTINGS | {"batch_size": 3, "drop_incomplete": drop})


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("drop", [True, False])
@pytest.mark.parametrize(("context", "rows"), [(4, 2048), (4, 9), (7, 1)])
@pytest.mark.parametrize("shift", [0, 5])
def test_scores_equal_literal_ones_for_any_chunks(monkeypatch, tied, drop, context, rows, shift):
    monkeypatch.setattr(characters, "ROWS", rows)
    model, ids = Bigram(tied=tied), text(46).astype(int) + shift
    settings = SETTINGS | {"drop_incomplete": drop, "examples": 5}
    scores = score(model, ids, context, settings)
    count = scored_positions(46, context, settings)
    nll, ranks, tail = zip(*literal_scores(model, ids.tolist(), context, count), strict=True)
    np.testing.assert_allclose(scores.nll, nll, atol=2e-4)
    assert scores.ranks.tolist() == list(ranks)
    np.testing.assert_allclose(scores.tail_mass, tail, atol=1e-5)
    np.testing.assert_allclose(scores.target_probability, np.exp(-np.array(nll)), atol=1e-5)
    # Examples are at evenly spaced positions, including the first and the last.
    at = np.linspace(0, count - 1, 5).round().astype(int)
    assert scores.example_targets.tolist() == ids[at + 1].tolist()
    assert scores.examples.shape == (5, 10)
    np.testing.assert_allclose(
        scores.examples[np.arange(5), scores.example_targets], scores.target_probability[at], atol=1e-6
    )


def test_ids_of_the_low_resource_language_do_not_overflow_a_byte():
    ids = np.full(9, 125, dtype=np.uint8)
    model = Bigram(vocabulary=260)
    symbols = [chr(0x4E00 + i) for i in range(130)]
    found = evaluated(model, ids, symbols, 4, SETTINGS, "best")
    rows = found.rows
    by_hand = score(model, ids.astype(int) + 130, 4, SETTINGS)
    value = next(row["value"] for row in rows if (row["metric"], row["group"]) == ("mean_rank", "LR"))
    assert value == by_hand.ranks.mean()


@pytest.mark.parametrize("examples", [0, 1, 1000])
def test_there_are_no_more_examples_than_positions(examples):
    scores = score(Bigram(), text(9), 4, SETTINGS | {"examples": examples})
    assert len(scores.examples) == len(scores.example_targets) == min(examples, 8)


def test_rows_and_arrays_are_those_of_the_documentation():
    settings = SETTINGS | {"examples": 3}
    found = evaluated(Bigram(), text(40), SYMBOLS, 4, settings, "best")
    rows, arrays = found.rows, found.arrays
    names = {(row["metric"], row["group"], row["split"]) for row in rows}
    # Of the whole run, not of a checkpoint; of untied models.
    leave_out = ["fitted_temperature", "temperature_at_bound", "fitted_perplexity", "uniq", "input_isotropy_sign_free"]
    leave_out += ["ratio_of_average", "average_of_ratio", "average_of_ratio_dropped"]
    expected = declared_rows.expected("characters", settings, leave_out)
    assert names == {row for row in expected if row[2].endswith("@best")}
    assert len(names) == len(rows)
    assert {name: array.shape for name, array in arrays.items()} == {
        "best.perplexity.HR": (200,),
        "best.perplexity.LR": (200,),
        "best.embeddings": (10, 4),
        "best.neighbours": (10, 3),
        "best.neighbour_cosines": (10, 3),
        "best.pca": (10, 2),
        "best.examples.HR": (3, 10),
        "best.example_targets.HR": (3,),
    }
    perplexity = next(row for row in rows if row["metric"] == "perplexity")
    assert perplexity["n"] == 32
    assert perplexity["signature"].startswith("perplexity|groups:language|context:4|batch:2|incomplete:drop|")
    last = evaluated(Bigram(), text(40), SYMBOLS, 4, settings, "last").arrays
    assert all(name.startswith("last.") and "examples" not in name for name in last)


def test_an_untied_model_has_its_input_measured_too():
    found = evaluated(Bigram(tied=False), text(40), SYMBOLS, 4, SETTINGS, "last")
    rows, arrays = found.rows, found.arrays
    values = {(row["metric"], row["group"]): row["value"] for row in rows}
    assert values["input_isotropy_sign_free", "HR"] != values["isotropy_sign_free", "HR"]
    np.testing.assert_array_equal(arrays["last.embeddings"], Bigram(tied=False).output_weight)


def test_the_best_perplexity_is_never_above_the_perplexity():
    scores = score(Bigram(), text(200), 4, SETTINGS | {"batch_size": 12})
    rows, curve = text_metrics(scores, "HR", "best", {})
    values = {row["metric"]: row["value"] for row in rows}
    assert values["best_perplexity"] == curve.min() <= values["perplexity"] == curve[99]
    assert values["perplexity"] == pytest.approx(math.exp(scores.nll.mean()), rel=1e-12)


def test_non_finite_values_are_strings_in_json():
    model = Bigram()
    model.output_weight = model.output_weight * 1e6
    found = evaluated(model, text(40), SYMBOLS, 4, SETTINGS, "best")
    rows = found.rows
    values = {(row["metric"], row["group"]): row["value"] for row in rows}
    assert values["perplexity", "LR"] == values["best_perplexity", "LR"] == "inf"
    assert values["best_temperature", "LR"] == "nan"
    model.output_weight = model.output_weight * math.nan
    found = evaluated(model, text(40), SYMBOLS, 4, SETTINGS, "best")
    rows = found.rows
    values = {(row["metric"], row["group"]): row["value"] for row in rows}
    measured = (*((name, "HR") for name in ("perplexity", *EIGENVECTORS)), ("pca_distance", ""))
    assert {values[name] for name in (*measured, ("pca_distance_relative", ""))} == {"nan"}
    assert values["mean_rank", "HR"] == 10
