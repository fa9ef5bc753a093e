"""COMET by the program comet-score: a stand-in reads and writes the same files as that of unbabel-comet 2.2.7."""

import sys

import pytest

from rarepapers.core.errors import UserError
from rarepapers.evaluation.comet import comet_rows
from rarepapers.evaluation.decoding import Decoding

PROGRAM = f"""#!{sys.executable}
import json, sys
arguments = [word for word in sys.argv[1:] if word != "--quiet"]
words = dict(zip(arguments[::2], arguments[1::2]))
if words["--model"] == "unknown":
    sys.exit("KeyError: Model unknown not supported by COMET.")
if words["--model"] == "large" and words["--gpus"] == "0":
    sys.exit("too large for a CPU")
columns = dict(src=words["-s"], mt=words["-t"], ref=words["-r"])
texts = [[line.strip() for line in open(path, encoding="utf-8")] for path in columns.values()]
found = [dict(zip(columns, lines)) | dict(COMET=len(lines[1]) / 10) for lines in zip(*texts)]
json.dump({{words["-t"]: found[: 1 if words["--model"] == "short" else None]}}, open(sys.argv[-1], "w"))
"""
TEXTS = (["ein Haus", "ü"], ["a house", ""], ["one house", "o"])


@pytest.fixture
def program(tmp_path, monkeypatch):
    path = tmp_path / "comet-score"
    path.write_text(PROGRAM)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_mean_of_the_sentences(program):
    (found,) = comet_rows("some/model", *TEXTS, Decoding(4, 0.6), "test@best", "cpu")
    assert (found["metric"], found["split"], found["n"]) == ("comet", "test@best", 2)
    assert found["value"] == pytest.approx(0.35)
    assert "beam:4|length_exponent:0.6|model:some/model|checkpoint:best" in found["signature"]


@pytest.mark.parametrize("has_gpu", [True, False])
def test_it_runs_on_the_device_of_the_evaluation(program, monkeypatch, has_gpu):
    monkeypatch.setattr("torch.cuda.is_available", lambda: has_gpu)
    assert comet_rows("large", *TEXTS, Decoding(4, 0.6), "test@best", "cuda")
    with pytest.raises(UserError, match="too large for a CPU"):
        comet_rows("large", *TEXTS, Decoding(4, 0.6), "test@best", "cpu")


def test_a_missing_program_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"comet=some/model needs comet-score on PATH; .* comet=null leaves it out"):
        comet_rows("some/model", *TEXTS, Decoding(4, 0.6), "test@best", "cpu")


def test_its_errors_are_one_sentence(program):
    with pytest.raises(UserError, match=r"Model unknown not supported by COMET\..*comet=null leaves COMET out"):
        comet_rows("unknown", *TEXTS, Decoding(4, 0.6), "test@best", "cpu")
    with pytest.raises(UserError, match="scored 1 of 2 translations"):
        comet_rows("short", *TEXTS, Decoding(4, 0.6), "test@best", "cpu")
