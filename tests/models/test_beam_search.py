"""Beam search, compared with all possible translations and with a search without a cache."""

import itertools
import math
import threading

import numpy as np
import pytest
import torch

from rarepapers.models.beam_candidates import largest
from rarepapers.models.beam_search import Beam, beam_search, length_limit, translate
from rarepapers.models.building import build_model

SIZES = {"name": "encoder_decoder", "encoder_layers": 1, "decoder_layers": 2, "heads": 2, "width": 16, "context": 40}
SIZES |= {"tying": "three_way"}
START, PADDING, END = 0, 1, 2


def random_model(seed, types, context=40):
    """A model whose distributions are neither flat nor certain, with biases and norms that matter."""
    options = {"embedding_std": 0.5, "tying": "none", "output_bias": "zero", "context": context}
    model = build_model(SIZES | options, types, seed=seed).double().eval()
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in sorted(model.named_parameters()):
        if "embedding" not in name and parameter.dim() == 2:
            parameter.data.mul_(3)
        elif "norm.weight" in name:
            parameter.data.normal_(1, 0.3, generator=generator)
        elif parameter.dim() == 1:
            parameter.data.normal_(0, 0.3, generator=generator)
    model.output_bias.data[END] = 2.0
    return model


def random_sources(seed, types, number=7, longest=8):
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, longest, number)
    return [np.append(generator.integers(3, types, length), END) for length in lengths]


def padded(sources):
    ids = torch.full((len(sources), max(map(len, sources))), PADDING)
    for row, source in enumerate(sources):
        ids[row, : len(source)] = torch.from_numpy(source)
    return ids


@torch.no_grad()
def next_log_probabilities(model, source, ids):
    hidden = model(torch.from_numpy(source)[None], torch.tensor([[START, *ids]]))
    return model.logits(hidden)[0, -1].log_softmax(0).tolist()


def slow_search(model, source, beam, exponent, limit, types):
    """Reference for `beam_search`: one sentence, one hypothesis and one type at a time, without a cache."""
    limit = min(limit, model.config.context)
    hypotheses, best, closed = [((), 0.0)], ((), -math.inf), 0
    for length in range(1, limit + 1):
        candidates = []
        for ids, score in hypotheses:
            log_p = next_log_probabilities(model, source, ids)
            allowed = [END] if length == limit else [i for i in range(types) if i not in (START, PADDING)]
            candidates += [(score + log_p[i], ids, i) for i in allowed]
        candidates.sort(key=lambda candidate: -candidate[0])
        for log_p, ids, i in candidates[:beam]:
            if i == END:
                closed += 1
                best = max(best, (ids, log_p / length**exponent), key=lambda pair: pair[1])
        hypotheses = [((*ids, i), log_p) for log_p, ids, i in candidates[: 2 * beam] if i != END][:beam]
        if closed >= beam:
            break
    return best


@torch.no_grad()
def best_of_all(model, source, exponent, limit, types):
    """The best of all translations of at most `limit` ids, including </s>, with which every translation ends."""
    best = ((), -math.inf)
    ordinary = [i for i in range(types) if i not in (START, PADDING, END)]
    for length in range(limit):
        for ids in itertools.product(ordinary, repeat=length):
            hidden = model(torch.from_numpy(source)[None], torch.tensor([[START, *ids]]))
            log_p = model.logits(hidden)[0].log_softmax(1)
            total = sum(log_p[t, i].item() for t, i in enumerate([*ids, END]))
            best = max(best, (ids, total / (length + 1) ** exponent), key=lambda pair: pair[1])
    return best


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0])
def test_a_beam_wide_enough_finds_the_best_of_all_translations(exponent):
    types, limit = 6, 4
    lengths = set()
    for seed in range(6):
        model = random_model(seed, types)
        source = random_sources(seed, types, number=1)[0]
        ((ids, score),) = beam_search(model, padded([source]), 200, exponent, limit)
        expected, expected_score = best_of_all(model, source, exponent, limit, types)
        assert ids == list(expected)
        assert score == pytest.approx(expected_score, abs=1e-5)
        lengths.add(len(ids))
    assert len(lengths) > 1


@pytest.mark.parametrize("beam", [1, 2, 4, 5])
@pytest.mark.parametrize("exponent", [0.6, 1.0])
def test_search_equals_the_reference(beam, exponent):
    types = 24  # three chunks of candidates
    ended = 0
    for seed in range(5):
        model = random_model(10 + seed, types)
        sources = random_sources(seed, types)
        found = beam_search(model, padded(sources), beam, exponent)
        for source, (ids, score) in zip(sources, found, strict=True):
            limit = length_limit(len(source))
            expected, expected_score = slow_search(model, source, beam, exponent, limit, types)
            assert ids == list(expected)
            assert score == pytest.approx(expected_score, abs=1e-5)
            ended += len(ids) + 1 < limit
    assert 5 < ended < 30  # others end at their limit


def test_all_hypotheses_that_end_at_one_step_count():
    state = Beam.begin(torch.tensor([9, 9]))
    values = torch.tensor([[-2.0, -1.0, -math.inf], [-math.inf] * 3])
    assert state.close(values, torch.zeros(2, 3, dtype=torch.int64), 1.0) == [(0, [], -1.0)]
    assert state.closed.tolist() == [2, 0]
    assert state.is_open(2).tolist() == [False, True]
    assert state.is_open(3).tolist() == [True, True]


def test_a_narrow_beam_is_worse_than_a_wide_one():
    """Otherwise the tests above could not tell beam sizes apart."""
    scores = {}
    for beam in (1, 5):
        model = random_model(10, 24)
        found = beam_search(model, padded(random_sources(0, 24, number=20)), beam)
        scores[beam] = [score for _, score in found]
    assert any(narrow < wide - 1e-3 for narrow, wide in zip(scores[1], scores[5], strict=True))


def test_beam_1_is_greedy():
    model = random_model(11, 24)
    sources = random_sources(1, 24)
    for source, (ids, _) in zip(sources, beam_search(model, padded(sources), 1), strict=True):
        greedy = []
        while len(greedy) + 1 < length_limit(len(source)):
            log_p = next_log_probabilities(model, source, greedy)
            log_p[START] = log_p[PADDING] = -math.inf
            if np.argmax(log_p) == END:
                break
            greedy.append(int(np.argmax(log_p)))
        assert ids == greedy


@pytest.mark.parametrize("beam", [1, 5])
def test_a_sentences_result_does_not_depend_on_its_batch(beam):
    model = random_model(12, 24)
    sources = random_sources(2, 24, number=30, longest=12)
    together = beam_search(model, padded(sources), beam)
    alone = [beam_search(model, padded([source]), beam)[0] for source in sources]
    assert [ids for ids, _ in together] == [ids for ids, _ in alone]
    assert [score for _, score in together] == pytest.approx([score for _, score in alone], abs=1e-5)
    for batch_tokens in (1, 60, 10_000):
        assert translate(model, sources, beam, batch_tokens=batch_tokens) == [ids for ids, _ in alone]


def test_steps_with_a_cache_equal_whole_passes():
    """Hypotheses branch and change places, and sentences end; every step equals `decode` of the prefixes."""
    model = random_model(13, 24)
    sources = random_sources(3, 24, number=4)
    source = padded(sources)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        memory, mask = model.encode(source)
        assert mask is not None
        cache = model.cache(memory, mask, slots=1 + 3 * 6)
        prefixes = torch.full((4, 1, 1), START)
        for step in range(6):
            hidden = model.step(prefixes[:, :, -1], cache)
            for k in range(prefixes.shape[1]):
                expected = model.decode(prefixes[:, k], *model.encode(source))[:, -1]
                torch.testing.assert_close(hidden[:, k], expected, rtol=0, atol=1e-12)
            batch = len(prefixes)
            parents = torch.randint(prefixes.shape[1], (batch, 3), generator=generator)
            types = torch.randint(3, 24, (batch, 3, 1), generator=generator)
            past = prefixes.gather(1, parents[:, :, None].expand(-1, -1, prefixes.shape[2]))
            prefixes = torch.cat([past, types], dim=2)
            cache.reorder(parents)
            if step in (1, 3):
                rows = torch.tensor([r for r in range(batch) if r != 1])
                cache.keep(rows)
                prefixes, source = prefixes[rows], source[rows]


def test_a_cache_of_other_hypotheses_is_refused():
    model = random_model(13, 24)
    cache = model.cache(*model.encode(torch.tensor([[4, END]])), slots=9)
    with pytest.raises(ValueError, match="3 hypotheses are continued, but `reorder` was told of 1"):
        model.step(torch.tensor([[START] * 3]), cache)


def test_translations_have_no_special_types_and_keep_the_limit():
    model = random_model(14, 24)
    model.output_bias.data[[START, PADDING]] = 9.0
    model.output_bias.data[END] = -50.0
    sources = random_sources(4, 24)
    for beam in (1, 4):
        for source, ids in zip(sources, translate(model, sources, beam), strict=True):
            assert len(ids) == length_limit(len(source)) - 1
            assert not {START, PADDING, END} & set(ids)
        assert {len(ids) for ids in translate(model, sources, beam, max_length=6)} == {5}


def test_the_length_limit_is_an_integer():
    assert [length_limit(n) for n in (1, 5, 10)] == [11, 16, 22]
    assert length_limit(torch.tensor([1, 5, 10])).tolist() == [11, 16, 22]


def test_translations_are_cut_at_the_context():
    model = random_model(15, 24, context=8)
    model.output_bias.data[END] = -50.0
    long = np.append(np.arange(3, 23), END)
    assert translate(model, [long], 3) == translate(model, [np.append(long[:7], END)], 3)
    assert len(translate(model, [long], 3)[0]) == 7


def test_translating_keeps_the_training_mode():
    model = build_model(SIZES | {"dropout": 0.5}, 24, seed=1).train()
    sources = random_sources(5, 24)
    first = translate(model, sources, 2)
    assert first == translate(model, sources, 2)
    assert model.training
    assert not random_model(1, 24).training
    assert translate(model, [], 2) == []
    with pytest.raises(ValueError, match="no id, not even </s>"):
        translate(model, [np.array([], dtype=np.int64)], 2)


def test_threads_search_several_batches_at_once():
    model = random_model(16, 24)
    sources = random_sources(6, 24, number=30)
    expected = translate(model, sources, 3, batch_tokens=10_000)
    before = torch.get_num_threads()
    threads = set()
    model.decoder_norm.register_forward_hook(lambda *_: threads.add(threading.get_ident()))
    torch.set_num_threads(2)
    try:
        assert translate(model, sources, 3, batch_tokens=100) == expected
        assert torch.get_num_threads() == 2
        assert threads
        assert threading.get_ident() not in threads
        model.decoder_norm.register_forward_hook(lambda *_: 1 / 0)
        model.train()
        with pytest.raises(ZeroDivisionError):
            translate(model, sources, 3, batch_tokens=100)
        assert model.training
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("columns", "number"), [(640, 10), (77, 3), (7, 3), (7, 9), (130, 40), (1024, 1)])
def test_largest_equals_topk(columns, number):
    values = torch.randn(5, columns, generator=torch.Generator().manual_seed(columns))
    values[0] = -math.inf
    values[1, columns // 2 :] = -math.inf
    found, places = largest(values, number)
    expected = values.topk(min(number, columns))
    assert torch.equal(found, expected.values)
    assert torch.equal(values.gather(1, places), found)
    assert all(len(set(row)) == len(row) for row in places.tolist())
