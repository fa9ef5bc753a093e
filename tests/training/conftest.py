"""Small prepared corpus, and a run with every kind of state."""

import copy
import functools

import numpy as np
import pytest

from rarepapers.core.config_files import canonical_json
from rarepapers.data.characters.prepare import prepare
from rarepapers.data.pairs.encode_pairs import encode_pairs
from rarepapers.data.pairs.parallel_text import PairFiles
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.data.text.encode_text import encode

SETTINGS = {
    "corpus": {"low_resource_probability": 0.2},
    "model": {"name": "decoder", "layers": 1, "heads": 2, "width": 16, "context": 16, "dropout": 0.1},
    "training": {
        "steps": 400,
        "batch_size": 4,
        "optimiser": {"name": "adamw", "betas": [0.9, 0.99], "eps": 1e-8, "weight_decay": 0.1},
        "schedule": {"name": "cosine", "peak": 0.01, "final": 0.001, "warmup": 10},
        "clip_norm": 1.0,
        "validation": {"every": 50, "batches": 2},
        "threads": 1,
    },
    # Counters, row-wise moments, running sums and (by dropout) random numbers: all that a checkpoint must hold.
    "method": {
        "loss": {"name": "threshold", "margin": 2.0},
        "gate": {"name": "agg", "alpha": 0.5, "memory": 30},
        "embedding_update": {"name": "separated", "reading": "skip"},
        "observe": ["gradient_norms"],
    },
    "seed": 3,
}

# A language run with what a character run lacks: micro-batches, counters with a memory (one epoch is 22
# steps), tied sinusoidal inputs, no clipping, snapshots and the set of rare types.
LANGUAGE_SETTINGS = {
    "corpus": {},
    "model": {
        "name": "decoder",
        "layers": 1,
        "heads": 2,
        "width": 16,
        "context": 8,
        "dropout": 0.1,
        "attention_dropout": 0.0,
        "bias": True,
        "positions": "sinusoidal",
        "scale_embedding": True,
        "linear_init": "xavier",
    },
    "training": {
        "steps": 120,
        "batch_size": 3,
        "accumulation": 2,
        "optimiser": {"name": "adamw", "betas": [0.9, 0.98], "eps": 1e-8, "weight_decay": 0.1},
        "schedule": {"name": "inverse_sqrt", "peak": 0.01, "warmup": 10, "start": 1e-7},
        "clip_norm": None,
        "validation": {"every": 20, "tokens": 100},
        "threads": 1,
    },
    "method": {
        "gate": {"name": "agg", "alpha": 0.3},
        "observe": [
            {"name": "snapshots", "every": 30},
            {"name": "rare_types", "steps": 50},
            {"name": "rare_alignment", "every": 7},
        ],
    },
    "seed": 3,
}

# A translation run with what a language run lacks: batches of pairs, padding, an output bias, BLEU in
# validation, a mean of checkpoints, a penalty that stops, and observations between steps. An epoch is 20 steps.
TRANSLATION_SETTINGS = {
    "corpus": {},
    "model": {
        "name": "encoder_decoder",
        "encoder_layers": 1,
        "decoder_layers": 1,
        "heads": 2,
        "width": 16,
        "context": 40,
        "dropout": 0.1,
        "tying": "encoder_decoder",
        "output_bias": "unigram",
    },
    "training": {
        "steps": 60,
        "batch_tokens": 50,
        "accumulation": 2,
        "optimiser": {"name": "adamw", "betas": [0.9, 0.98], "eps": 1e-8, "weight_decay": 0.1},
        "schedule": {"name": "inverse_sqrt", "peak": 0.01, "warmup": 10, "start": 1e-7},
        "clip_norm": 1.0,
        "validation": {"every": 15, "bleu": {"beam": 2, "length_exponent": 1.0, "sentences": 10}},
        "select": "bleu",
        "average": 3,
        "threads": 1,
    },
    "method": {
        "loss": {"name": "cross_entropy", "label_smoothing": 0.1},
        "gate": {"name": "agg", "alpha": 0.9},
        "penalty": {"name": "unigram", "strength": 0.1, "until": 33},
        "observe": [
            {"name": "output_bias", "every": 13},
            {"name": "divergence", "number": 6, "positions": 100},
            {"name": "snapshots", "every": 30},
        ],
    },
    "seed": 3,
}


@pytest.fixture(scope="session")
def manifest(tmp_path_factory):
    """Manifest of a prepared text of 20 symbols."""
    folder = tmp_path_factory.mktemp("corpus")
    letters = np.array(list("abcdefghijklmnopqrst"))
    generator = np.random.default_rng(0)
    text = "".join(letters[(generator.random(4000) ** 2 * 20).astype(int)]) + "".join(letters)
    (folder / "text.txt").write_text(text)
    corpus = {"kind": "characters", "splits": {"train": 0.9, "valid": 0.1}}
    prepare("letters", corpus, folder / "text.txt", folder / "prepared")
    return folder / "prepared" / "manifest.json"


@pytest.fixture(scope="session")
def corpus(manifest):
    return load_manifest(manifest)


@pytest.fixture(scope="session")
def language_manifest(tmp_path_factory):
    """Manifest of a text of about 40 words, 1,100 of them in the training split, with a rare tail."""
    folder = tmp_path_factory.mktemp("language")
    generator = np.random.default_rng(0)
    texts = {}
    for split, lines in (("train", 100), ("valid", 20), ("test", 20)):
        ids = (40 * generator.random((lines, 10)) ** 3).astype(int)
        texts[split] = folder / f"{split}.txt"
        texts[split].write_text("".join(" ".join(f"w{i}" for i in line) + "\n" for line in ids))
    encode("words", {"kind": "language", "tokenizer": {"name": "words"}}, texts, folder / "prepared")
    return folder / "prepared" / "manifest.json"


@pytest.fixture(scope="session")
def language(language_manifest):
    return load_manifest(language_manifest)


@pytest.fixture(scope="session")
def translation_manifest(tmp_path_factory):
    """Manifest of pairs of 2 to 7 words, 200 for training; the target is the source reversed, in capitals."""
    folder = tmp_path_factory.mktemp("translation")
    generator = np.random.default_rng(0)
    words = ["".join(generator.choice(list("abdegiklmnorstu"), 4)) for _ in range(40)]
    files = {}
    for split, lines in (("train", 200), ("valid", 30), ("test", 10)):
        sources = [
            [words[int(40 * place**2)] for place in generator.random(generator.integers(2, 8))] for _ in range(lines)
        ]
        files[split] = [PairFiles(folder / f"{split}.a", folder / f"{split}.b")]
        files[split][0].source.write_text("".join(" ".join(line) + "\n" for line in sources))
        files[split][0].target.write_text("".join(" ".join(line[::-1]).upper() + "\n" for line in sources))
    corpus = {
        "kind": "translation",
        "languages": {"source": "de", "target": "en"},
        "preparation": {"normalise": "none", "tokenise": "none"},
        "tokenizer": {"name": "sentencepiece", "types": 80},
    }
    encode_pairs("pairs", corpus, files, folder / "prepared")
    return folder / "prepared" / "manifest.json"


@pytest.fixture(scope="session")
def translation(translation_manifest):
    return load_manifest(translation_manifest)


def run_of(settings, hash_="0123456789abcdef", **changes):
    """A run of these settings with some changed; a section given whole replaces keys, `method` all of it."""
    settings = copy.deepcopy(settings)
    for section, values in changes.items():
        keeps = isinstance(values, dict) and section != "method"
        settings[section] = settings[section] | values if keeps else values
    run = {"paper": "p", "experiment": "e", "method": "m", "seed": settings["seed"]}
    return run | {"hash": hash_, "settings": settings}


@pytest.fixture
def make_run():
    """A run with some settings changed: make_run(training={"steps": 5})."""
    return functools.partial(run_of, SETTINGS)


@pytest.fixture
def make_language_run():
    """A language run with some settings changed."""
    return functools.partial(run_of, LANGUAGE_SETTINGS)


@pytest.fixture
def make_translation_run():
    """A translation run with some settings changed."""
    return functools.partial(run_of, TRANSLATION_SETTINGS)


@pytest.fixture
def no_signals(monkeypatch):
    """Training in this process must not take over pytest's Ctrl-C."""
    monkeypatch.setattr("rarepapers.training.loop.StopFlag", lambda: type("Never", (), {"signal": None})())


@pytest.fixture
def run_json(make_run):
    return canonical_json(make_run())
