"""The declaration of metrics: complete, and the words of the documentation."""

from pathlib import Path

import pandas as pd
import pytest
from tests.evaluation.second_route import NOT_MEASURED

from rarepapers.metrics.declared import METRICS, groups_of, is_declared

ROOT = Path(__file__).parents[2]
LANGUAGE = {
    "groups": [{"names": ["freq", "med", "rare"]}, {"names": ["freq", "rare"], "suffix": "@index"}],
    "word_similarity": {"MEN": "men/pairs"},
}


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_has_a_direction_a_unit_and_one_sentence(name):
    metric = METRICS[name]
    assert metric.better in ("up", "down", "none")
    assert metric.unit
    assert metric.measured
    assert metric.says.rstrip(".") == metric.says != ""
    assert ". " not in metric.says


def test_groups_follow_the_settings_of_the_evaluation():
    assert groups_of("perplexity", "language", LANGUAGE) == [
        *("freq", "med", "rare", "freq@index", "rare@index"),
        *("total", "nonrare"),
    ]
    assert groups_of("perplexity_within", "language", LANGUAGE) == ["freq", "med", "rare"]
    assert groups_of("rare_neighbours", "language", LANGUAGE) == ["rare"]
    assert groups_of("word_similarity", "language", LANGUAGE) == ["MEN"]
    assert groups_of("generated_uniq", "language", LANGUAGE) is None


def test_a_row_needs_metric_kind_group_and_split():
    assert is_declared("perplexity", "rare@index", "test@best", "language", LANGUAGE)
    for wrong in (
        ("perplexitty", "rare", "test@best", "language"),
        ("perplexity", "rare", "test@best", "characters"),
        ("perplexity", "low", "test@best", "language"),
        ("perplexity", "rare", "valid@best", "language"),
    ):
        assert not is_declared(*wrong, LANGUAGE)


def test_every_recorded_number_is_of_a_declared_metric():
    recorded = pd.read_csv(ROOT / "results" / "recorded" / "small" / "metrics.csv", usecols=["metric"])
    assert set(recorded["metric"]) <= METRICS.keys()


def test_what_is_not_computed_twice_is_a_metric():
    assert set(NOT_MEASURED) <= METRICS.keys()
