"""A further tokenizer is a module and one entry of config: nothing else lists tokenizers."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# A tokenizer of letters, without a library, based on that of words.
MODULE = '''
from typing import Annotated, Literal, NotRequired, TypedDict

from rarepapers.core.type_check import Limit
from rarepapers.core.files import write_json
from rarepapers.data.tokenizers import TOKENIZER
from rarepapers.data.tokenizers.words import Words


class LettersConfig(TypedDict):
    """Letters."""

    name: Literal["single_letters"]
    lower: NotRequired[bool]


class SingleLetters(Words):
    config = LettersConfig

    def save(self, folder):
        write_json(folder / TOKENIZER, {"name": "single_letters"})

    def encode(self, lines):
        return super().encode([" ".join(line) for line in lines])

    @property
    def described(self):
        return {"name": "single_letters"}

    def split(self, text):
        return list(text)

    def join(self, symbols):
        return "".join(symbols)
'''
USES = """
import json, sys
from pathlib import Path
from rarepapers.core.errors import UserError
from rarepapers.data.catalogue import corpus_definition, load_corpora
from rarepapers.experiments.run_code import evaluation_code
from rarepapers.experiments.run_size import types_at_most

try:
    corpora = load_corpora(Path("corpora.yaml"))
except UserError as error:
    sys.exit(str(error))
assert not {"torch", "numpy", "tokenizers", "sentencepiece"} & set(sys.modules)
from rarepapers.data.codec import codec_of
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.data.text.encode_text import encode

encode("c", corpora["c"], {split: Path("text") for split in ("train", "valid", "test")}, Path("out"))
corpus = load_manifest("out/manifest.json")
codec = codec_of(corpus)
settings = {"corpus": {"name": "c", "definition": corpus_definition(corpora, {}, "c")}, "model": {"name": "decoder"}}
before = evaluation_code(settings, "language")
print(json.dumps([corpus.tokenizer["name"], codec.text(codec.ids("abba")), types_at_most(settings), before]))
"""


@pytest.fixture
def use(tmp_path):
    """Prepare a corpus with this tokenizer in a copy of the package."""
    shutil.copytree(ROOT / "workflow", tmp_path / "workflow", ignore=shutil.ignore_patterns("__pycache__"))
    module = tmp_path / "workflow/rarepapers/data/tokenizers/single_letters.py"
    module.write_text(MODULE)
    (tmp_path / "text").write_text("abba\nac\n")

    def use(options=""):
        words = "{train: 9, valid: 9, test: 9}"
        (tmp_path / "corpora.yaml").write_text(
            f"c: {{kind: language, synthetic: {{name: language, seed: 1, words: {words}}}, "
            f"tokenizer: {{name: single_letters{options}}}}}\n"
        )
        environment = os.environ | {"PYTHONPATH": str(tmp_path / "workflow")}
        return subprocess.run(
            [sys.executable, "-c", USES], cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    use.module = module
    return use


def test_a_further_tokenizer_needs_no_list(use):
    said = use()
    assert said.returncode == 0, said.stderr
    *made, digest = json.loads(said.stdout)
    assert made == ["single_letters", "abba", 9]
    # Its code is in the digest of results, although no import names it.
    use.module.write_text(MODULE.replace("list(text)", "list(text.lower())"))
    assert json.loads(use().stdout)[-1] != digest


def test_its_options_are_checked(use):
    said = use(", lowr: true")
    assert said.returncode == 1
    assert "unknown key c.tokenizer.lowr; known here: name, lower" in said.stderr
