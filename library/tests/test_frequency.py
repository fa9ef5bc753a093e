"""Counts of a training text and what follows from them, compared with values by hand or by the plain formula."""

import math

import numpy as np
import pytest
import torch

from raretok import AGG, Freeze, FrequencyGroups, OutputLoss, agg_alpha, count_targets, log_unigram, start_bias

# Ids are not in order of frequency: ranks are 3, 0, 9, 1, 8, 2, 7, 4, 6, 5.
COUNTS = [30, 90, 0, 60, 1, 50, 2, 20, 5, 10]


def test_counts_are_those_of_all_texts():
    texts = [[1, 1, 3], torch.tensor([[0, -100], [3, 3]]), np.array([5], dtype=np.uint16)]
    assert count_targets(texts, 7).tolist() == [1, 2, 0, 3, 0, 1, 0]
    with pytest.raises(ValueError, match="has the id 7, but types is 7"):
        count_targets([[7]], 7)
    with pytest.raises(ValueError, match="has the id -1"):
        count_targets([[2, -1]], 7)
    with pytest.raises(ValueError, match="of type float64; give token ids"):
        count_targets([[1.5]], 7)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_alpha_makes_the_given_share_rare(share):
    counts = np.arange(1, 101)
    alpha = agg_alpha(counts, targets_per_step=64, share=share)
    assert (counts * 64 / counts.sum() < alpha).sum() == round(100 * share)
    OutputLoss(gate=AGG(alpha=alpha, memory=10), counts=counts, targets_per_step=64)


def test_alpha_ignores_special_and_unused_types():
    plain = agg_alpha([8, 4, 2, 1], 10, 0.5)
    assert plain == 3 * 10 / 15
    assert type(agg_alpha(np.array([8, 4, 2, 1]), np.float64(10), 0.5)) is float
    assert agg_alpha([8, 4, 2, 1, 0, 85], 100, 0.5, special=[5]) == 3
    # Half of all six types, of which two never occur.
    assert agg_alpha([8, 4, 2, 0, 0, 1], 15, 0.5, share_of="all") == 1.5
    assert agg_alpha([8, 4, 2, 0, 0, 1], 15, 0.5) == 3
    with pytest.raises(ValueError, match="share is 1"):
        agg_alpha([1, 2], 10, 1)
    with pytest.raises(ValueError, match="two different values"):
        agg_alpha([3, 3, 0], 10)
    with pytest.raises(ValueError, match="special has 9, which is no id"):
        agg_alpha([1, 2], 10, special=[9])


def test_groups_are_by_frequency_not_by_id():
    groups = FrequencyGroups(COUNTS, shares=(0.3, 0.5, 0.2))
    expected = {"frequent": [1, 3, 5], "medium": [0, 7, 9, 8], "rare": [6, 4]}
    assert {name: ids.tolist() for name, ids in groups.members().items()} == expected
    # 2 never occurs: it is in no group, but rare as a target.
    of_all = FrequencyGroups(COUNTS, shares=(0.3, 0.5, 0.2), share_of="all")
    expected |= {"medium": [0, 7, 9, 8, 6], "rare": [4, 2]}
    assert {name: ids.tolist() for name, ids in of_all.members().items()} == expected
    assert groups.of([[1, 4], [0, 2]]).tolist() == [[0, 2], [1, 2]]
    assert groups.distinct([1, 1, 3, 2, 2, 2]) == {"frequent": 2, "medium": 0, "rare": 1, "total": 3}


def test_groups_take_arrays_of_any_kind():
    """Including unsigned counts, which cannot be sorted by their negative."""
    expected = FrequencyGroups(COUNTS).order.tolist()
    found = FrequencyGroups(np.array(COUNTS, dtype=np.uint16), shares=np.array([0.3, 0.5, 0.2]))
    assert found.order.tolist() == expected
    with pytest.raises(ValueError, match="share_of is 'some'; it must be one of occurring, all"):
        FrequencyGroups(COUNTS, share_of="some")
    with pytest.raises(ValueError, match="shares has 2 numbers; give 3"):
        FrequencyGroups(COUNTS, shares=[0.3, 0.7])


def test_ids_outside_the_vocabulary_are_refused():
    groups = FrequencyGroups(COUNTS)
    for call in (
        lambda ids: groups.of(ids),
        lambda ids: groups.distinct(ids),
        lambda ids: groups.mean([1, 1], ids),
        lambda ids: groups.perplexity([1, 1], ids),
    ):
        for wrong in (-1, 10):
            with pytest.raises(ValueError, match=f"an id is {wrong}, but there are 10 types"):
                call([3, wrong])
        with pytest.raises(ValueError, match="ids are of type float64; give token ids, whole numbers"):
            call([0.7, 2.9])


def test_no_ids_have_no_groups():
    assert FrequencyGroups(COUNTS).of([]).tolist() == []


def test_groups_by_mass_are_the_smallest_that_reach_it():
    groups = FrequencyGroups(COUNTS, masses=(0.5, 0.4, 0.1))
    assert [len(ids) for ids in groups.members().values()] == [2, 3, 4]
    with pytest.raises(ValueError, match="not both"):
        FrequencyGroups(COUNTS, masses=(0.5, 0.4, 0.1), shares=(0.3, 0.5, 0.2))
    with pytest.raises(ValueError, match=r"shares is \[0.3, 0.5, 0.2\], which leaves a group of the 2 types empty"):
        FrequencyGroups([5, 4])


@pytest.mark.parametrize("kind", ["shares", "masses"])
@pytest.mark.parametrize(
    "parts", [(0.3, 0.5, 0.1), (0.3, 0.5, 0.9), (30, 50, 20), (-0.3, 0.5, 0.8), (0.5, 0.5, math.nan)]
)
def test_shares_that_are_none_are_refused(kind, parts):
    with pytest.raises(ValueError, match=rf"{kind} is \[.*\]; the numbers must be above 0 and their sum 1"):
        FrequencyGroups(COUNTS, **{kind: parts})
    FrequencyGroups(COUNTS, **{kind: (0.3333333, 0.3333333, 0.3333333)})


def test_means_by_group():
    groups = FrequencyGroups(COUNTS)
    targets = torch.tensor([1, 3, 0, 4])
    nll = torch.tensor([1.0, 3.0, 5.0, 7.0], dtype=torch.bfloat16)
    assert groups.perplexity(nll, targets) == pytest.approx(
        {"frequent": math.exp(2), "medium": math.exp(5), "rare": math.exp(7), "total": math.exp(4)}
    )
    assert groups.perplexity(nll.view(2, 2), targets.view(2, 2)) == groups.perplexity(nll, targets)
    assert groups.mean(nll.view(2, 2), targets.view(2, 2)) == groups.mean(nll, targets)
    for method in (groups.perplexity, groups.mean):
        with pytest.raises(ValueError, match=r"values of shape \(2, 3\) for targets of shape \(3, 2\)"):
            method(torch.ones(2, 3), torch.ones(3, 2, dtype=torch.int64))
    found = groups.mean([1, 0, 1, 0], [1, 3, 5, 4])
    assert found == pytest.approx({"frequent": 2 / 3, "medium": math.nan, "rare": 0, "total": 0.5}, nan_ok=True)


@pytest.mark.parametrize("bias", [True, False])
def test_a_bias_starts_at_the_unigram_distribution(bias):
    head = torch.nn.Linear(4, 10, bias=bias)
    start_bias(head, COUNTS)
    assert isinstance(head.bias, torch.nn.Parameter)
    assert head.bias.requires_grad
    assert any(parameter is head.bias for parameter in head.parameters())
    expected = (np.array(COUNTS) + 1) / (sum(COUNTS) + 10)
    np.testing.assert_allclose(head(torch.zeros(4)).softmax(0).detach(), expected, rtol=1e-6)
    np.testing.assert_allclose(log_unigram(COUNTS).exp(), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="counts has 9 types, but the layer has 10 outputs"):
        start_bias(head, COUNTS[1:])
    with pytest.raises(ValueError, match=r"head is of type Embedding; give the torch\.nn\.Linear"):
        start_bias(torch.nn.Embedding(10, 4), COUNTS)


@pytest.mark.parametrize("use", [FrequencyGroups, lambda counts: agg_alpha(counts, 20), log_unigram])
@pytest.mark.parametrize("counts", [[-1, 1, 2, 3], [0.5, 0.3, 0.2], [0, 0, 0], [[1, 2], [3, 4]]])
def test_counts_that_are_none_are_refused(use, counts):
    with pytest.raises(ValueError, match="counts must be V whole numbers"):
        use(counts)


def test_an_id_named_twice_is_special_once():
    """Padding and the end of a text are often the same id."""
    counts = [0, 0, 100, 50, 20, 10, 5, 4, 3, 2, 1, 1]
    rare = [OutputLoss(gate=Freeze("bc", share=0.3), counts=counts, special=ids).rare() for ids in ([0], [0, 0])]
    assert rare[0].tolist() == rare[1].tolist()
