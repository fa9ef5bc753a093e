"""The random numbers of stop_jostling's authors, against literal draws, and a short training."""

import json
import math
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import random_streams as streams

TYPES, WIDTH = 130, 128


def literal_table(kind: str, seed: int) -> torch.Tensor:
    """The tied matrix, drawn layer by layer and, if separated, vector by vector."""
    torch.manual_seed(seed)
    table, positions = nn.Embedding(TYPES, WIDTH), nn.Embedding(64, WIDTH)
    sizes = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)] * 4
    linear = [nn.Linear(*size, bias=False).weight for size in sizes]
    head = nn.Linear(WIDTH, TYPES, bias=False)

    def initialise(vectors):
        for weights in [*vectors, positions.weight, *linear, *vectors]:
            nn.init.normal_(weights, 0.0, 0.02)
        for weights in linear[1::2]:
            nn.init.normal_(weights, 0.0, 0.02 / math.sqrt(8))

    initialise([head.weight])
    if kind == "matrix":
        return head.weight.detach()
    vectors = [torch.randn(WIDTH) for _ in range(2 * TYPES)][TYPES:]
    initialise(vectors)
    assert table.weight.shape == head.weight.shape
    return torch.stack(vectors)


@pytest.mark.parametrize("kind", streams.KINDS)
def test_a_model_starts_from_the_literal_draws(kind):
    expected = literal_table(kind, 1337)
    left = torch.get_rng_state()
    model, state = streams.started(kind, 1337)
    assert torch.equal(model.output_weight, expected)
    assert torch.equal(state, left)


def test_a_short_training_is_evaluated_in_both_languages(tmp_path, monkeypatch, capsys):
    text = "".join(chr(33 + i * i % 65) for i in range(3000)) + "".join(chr(33 + i) for i in range(65)) * 600
    (tmp_path / "input.txt").write_text(text)
    flags = ["--initial", "matrix", "--table", "separated", "--batches", "separated", "--steps", "40"]
    monkeypatch.setattr(sys, "argv", ["random_streams.py", str(tmp_path / "input.txt"), *flags])
    threads = torch.get_num_threads()
    streams.main()
    torch.set_num_threads(threads)
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("step 0: train 4.9")
    found = json.loads(last)
    # the other language is 2% of the text
    assert found["HR"]["perplexity"] < found["LR"]["perplexity"] < 129
    assert abs(found["cosine"]) < 0.2
