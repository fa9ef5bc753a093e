"""Stand-ins with the decoder's interface, and small prepared corpora with untrained runs."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from raretok.data.corpora import load_manifest
from raretok.data.encode import encode
from raretok.models import build_model

LANGUAGE_MODEL = {"name": "decoder", "layers": 1, "heads": 2, "width": 8, "context": 16, "positions": "sinusoidal"}


class NextToken(torch.nn.Module):
    """A model rigged to given probabilities: what follows a token depends on that token alone. table: V x V."""

    def __init__(self, table):
        super().__init__()
        self.output_weight = torch.as_tensor(table, dtype=torch.float32).log().T.contiguous()

    def forward(self, ids):
        return torch.nn.functional.one_hot(ids, len(self.output_weight)).float()

    def logits(self, hidden):
        # Not a product: 0 x -inf, for tokens that never follow, is no number.
        return self.output_weight.T[hidden.argmax(-1)]


class Cumulative(torch.nn.Module):
    """A model whose logits depend on every token it is shown, and so on where its context begins."""

    def __init__(self, vocabulary=12, width=5):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.output_weight = torch.randn(vocabulary, width, generator=generator)

    def forward(self, ids):
        return self.output_weight[ids].cumsum(1)

    def logits(self, hidden):
        return hidden @ self.output_weight.T


@pytest.fixture(scope="session")
def language_texts(tmp_path_factory):
    """Train, valid and test texts of Zipfian words, one sentence a line; and the words."""
    folder = tmp_path_factory.mktemp("texts")
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefghijklmnop"), rng.integers(2, 7))) for _ in range(120)]
    words = list(dict.fromkeys(words))
    weights = 1 / np.arange(1, len(words) + 1)
    weights /= weights.sum()
    for split, lines in (("train", 200), ("valid", 20), ("test", 25)):
        drawn = [" ".join(rng.choice(words, rng.integers(3, 9), p=weights)) for _ in range(lines)]
        (folder / f"{split}.txt").write_text("".join(f" {line} \n \n" for line in drawn))
    return folder, words


@pytest.fixture(scope="session", params=["words", "bpe"])
def prepared(request, language_texts, tmp_path_factory):
    """A prepared corpus of kind language, of words or of pieces."""
    texts, _ = language_texts
    folder = tmp_path_factory.mktemp(request.param)
    tokenizer = {"words": {"name": "words"}, "bpe": {"name": "bpe", "types": 380}}[request.param]
    encode(
        "tiny",
        {"kind": "language", "tokenizer": tokenizer},
        {split: texts / f"{split}.txt" for split in ("train", "valid", "test")},
        folder,
    )
    return load_manifest(folder / "manifest.json")


@pytest.fixture
def language_run(prepared, language_texts, tmp_path):
    """A folder with `run/`, an untrained run on the prepared corpus, and `pairs.tsv` of its words."""
    folder = tmp_path / "run"
    folder.mkdir()
    for seed, name in enumerate(("model", "last")):
        model = build_model(LANGUAGE_MODEL, prepared.types, seed=seed)
        save_file(model.state_dict(), folder / f"{name}.safetensors")
    save_file({}, folder / "snapshots.safetensors")
    np.savez(folder / "observations.npz")
    record = {"hash": "0123", "data": prepared.sha256, "settings": {"model": LANGUAGE_MODEL}}
    (folder / "training.json").write_text(json.dumps(record))
    _, words = language_texts
    pairs = [f"{a}\t{b}\t{i % 7}\n" for i, (a, b) in enumerate(zip(words, words[3:], strict=False))]
    (tmp_path / "pairs.tsv").write_text("".join(pairs))
    return tmp_path
