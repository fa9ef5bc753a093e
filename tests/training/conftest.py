"""A small prepared corpus and a run that uses every kind of state, for tests of training."""

import copy

import numpy as np
import pytest

from raretok.configuration import canonical_json
from raretok.data.corpora import load_manifest, prepare

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


@pytest.fixture
def make_run():
    """A run with some settings changed: make_run(training={"steps": 5})."""

    def make(hash_="0123456789abcdef", **changes):
        settings = copy.deepcopy(SETTINGS)
        for section, values in changes.items():
            settings[section] = settings[section] | values if isinstance(values, dict) else values
        run = {"paper": "p", "experiment": "e", "method": "m", "seed": settings["seed"]}
        return run | {"hash": hash_, "settings": settings}

    return make


@pytest.fixture
def run_json(make_run):
    return canonical_json(make_run())
