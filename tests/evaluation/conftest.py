"""Rigged models with the decoder's interface, and small prepared corpora with untrained runs."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from rarepapers.data.pairs.encode_pairs import encode_pairs
from rarepapers.data.pairs.parallel_text import PairFiles
from rarepapers.data.pairs.prepared_pairs import load_pairs
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.data.synthetic.synthetic_pairs import write_pairs
from rarepapers.data.text.encode_text import encode
from rarepapers.metrics.calibration import log_frequencies
from rarepapers.models.building import build_model

LANGUAGE_MODEL = {"name": "decoder", "layers": 1, "heads": 2, "width": 8, "context": 16, "positions": "sinusoidal"}


class NextToken(torch.nn.Module):
    """A model rigged to given probabilities: the next token depends only on the current one. table: V x V."""

    def __init__(self, table):
        super().__init__()
        self.output_weight = torch.as_tensor(table, dtype=torch.float32).log().T.contiguous()

    def forward(self, ids):
        return torch.nn.functional.one_hot(ids, len(self.output_weight)).float()

    def logits(self, hidden):
        # Not a product, because 0 x -inf, for tokens that never follow, is NaN.
        return self.output_weight.T[hidden.argmax(-1)]


class Cumulative(torch.nn.Module):
    """A model whose logits depend on all tokens of its context, and so on where the context begins."""

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


TRANSLATION_MODEL = {
    "name": "encoder_decoder",
    "encoder_layers": 1,
    "decoder_layers": 1,
    "heads": 2,
    "width": 8,
    "context": 40,
    "tying": "three_way",
    "output_bias": "unigram",
}


@pytest.fixture(scope="session")
def prepared_pairs(tmp_path_factory):
    """A prepared corpus of kind translation: a synthetic pair of languages with a second domain."""
    texts, folder = tmp_path_factory.mktemp("pair_texts"), tmp_path_factory.mktemp("pairs")
    write_pairs(texts, seed=3, pairs={"train": 200, "valid": 20, "test": 25, "domain.second": 15})
    entry = {
        "kind": "translation",
        "languages": {"source": "xa", "target": "xb"},
        "preparation": {"normalise": "none", "tokenise": "none"},
        "tokenizer": {"name": "sentencepiece", "types": 320},
    }
    files = {
        split: [PairFiles(texts / f"{split}.source.txt", texts / f"{split}.target.txt")]
        for split in ("train", "valid", "test", "domain.second")
    }
    encode_pairs("tiny_pair", entry, files, folder)
    return load_manifest(folder / "manifest.json")


@pytest.fixture(scope="session")
def pair_links(prepared_pairs, tmp_path_factory):
    """Word links of the training split: source token i with target token i, as far as both go."""
    path = tmp_path_factory.mktemp("links") / "train.links"
    pairs = load_pairs(prepared_pairs, "train")
    lengths = np.minimum(np.diff(pairs.source_offsets), np.diff(pairs.target_offsets)) - 1
    path.write_text("".join(" ".join(f"{i}-{i}" for i in range(length)) + "\n" for length in lengths))
    return path


@pytest.fixture
def translation_run(prepared_pairs, tmp_path):
    """A folder with `run/`, an untrained run on the prepared pairs with validations and observations."""
    folder = tmp_path / "run"
    folder.mkdir()
    for seed, name in enumerate(("model", "last")):
        model = build_model(TRANSLATION_MODEL, prepared_pairs.types, seed=seed)
        model.set_output_bias(torch.from_numpy(log_frequencies(prepared_pairs.counts)))
        save_file(model.state_dict(), folder / f"{name}.safetensors")
    save_file({}, folder / "snapshots.safetensors")
    observed = {"divergence.steps": [0, 1, 10], "output_bias.steps": [0, 10]}
    observed |= {f"divergence.{name}": [3.0, 1.0, 2.0] for name in ("unigram", "uniform", "empirical")}
    observed |= {"output_bias.norm": [10.0, 12.0], "output_bias.divergence": [0.5, 0.4]}
    np.savez(folder / "observations.npz", **{name: np.array(values) for name, values in observed.items()})
    measured = [(10, "valid_bleu", 2), (10, "valid_chrf", 20), (20, "valid_bleu", 6), (20, "valid_chrf", 30)]
    (folder / "history.csv").write_text(
        "step,split,loss,learning_rate,gradient_norm,tokens\n1,train,5,0.1,1,100\n10,valid,4,,,\n"
        + "".join(f"{step},{split},{value},,,\n" for step, split, value in measured)
    )
    record = {"hash": "0123", "data": prepared_pairs.sha256, "settings": {"model": TRANSLATION_MODEL}}
    (folder / "training.json").write_text(json.dumps(record))
    return tmp_path
