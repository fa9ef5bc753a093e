"""The command `compare` on files written by `evaluate`."""

import argparse
import json

import pytest

from rarepapers.core.errors import UserError
from rarepapers.data.catalogue import PairFiles
from rarepapers.data.pairs.encode_pairs import encode_pairs
from rarepapers.evaluation import compare_command
from rarepapers.metrics.translation_scores import Scoring
from rarepapers.metrics.translation_tests import compare

TOKENIZER = {"name": "bpe_joint", "merges": 20}
REFERENCES = [
    "the cat sat on the mat .",
    "a dog ran under the house .",
    "green is old .",
    "one two three four five",
] * 5
ONE = [line.replace("cat", "dog") for line in REFERENCES]
OTHER = [line.rpartition(" ")[0] for line in REFERENCES]


def prepare(folder, name, lines=REFERENCES):
    """A lower-cased corpus `name` in `folder`/data, whose splits and sides are all `lines`."""
    for side in ("source", "target"):
        (folder / f"test.{side}.txt").write_text("\n".join(lines) + "\n")
    files = [PairFiles(folder / "test.source.txt", folder / "test.target.txt")]
    entry = {"kind": "translation", "languages": {"source": "de", "target": "en"}, "tokenizer": TOKENIZER}
    entry["preparation"] = {"normalise": "none", "tokenise": "none", "lower": True}
    encode_pairs(name, entry, dict.fromkeys(("train", "valid", "test"), files), folder / "data" / name)


@pytest.fixture
def folder(tmp_path):
    prepare(tmp_path, "tiny")
    for name, lines in (("one", ONE), ("other", OTHER)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"test": lines}))
    return tmp_path


def run(folder, *hypotheses):
    parser = argparse.ArgumentParser()
    compare_command.add_arguments(parser)
    options = [
        "--manifest",
        folder / "data" / "tiny" / "manifest.json",
        "--samples",
        50,
        "--output",
        folder / "out.json",
    ]
    options += ["--hypotheses", *(pair.replace("=", f"={folder}/") for pair in hypotheses)]
    compare_command.main(parser.parse_args([str(option) for option in options]))
    return json.loads((folder / "out.json").read_text())


def test_all_systems_are_compared_with_the_first(folder):
    found = run(folder, "mle=one.json", "agg=other.json", "same=one.json")
    assert found["split"] == "test"
    assert found["sentences"] == 20
    rows = found["comparisons"]
    assert {row["baseline"] for row in rows} == {"mle"}
    assert [row["system"] for row in rows] == ["agg"] * 4 + ["same"] * 4
    assert [row["p"] for row in rows[4:]] == [1] * 4
    for row, one in zip(
        rows[:4], compare(ONE, OTHER, REFERENCES, Scoring("en", lowercase=True), samples=50), strict=True
    ):
        assert (row["metric"], row["test"], row["first"], row["p"]) == (one.metric, one.test, one.first, one.p)


@pytest.mark.parametrize(
    ("hypotheses", "message"),
    [
        (("mle=one.json",), "name at least two"),
        (("mle=one.json", "mle=other.json"), "a label of its own"),
        (("one.json", "agg=other.json"), "each must be LABEL=PATH"),
        (("mle=one.json", "agg=absent.json"), "absent.json holds no translations"),
    ],
)
def test_incomparable_files_are_refused(folder, hypotheses, message):
    with pytest.raises(UserError, match=message) as caught:
        run(folder, *hypotheses)
    assert "\n" not in str(caught.value)
    assert not (folder / "out.json").exists()


def test_scores_are_those_of_the_corpus(folder):
    rows = run(folder, "mle=one.json", "agg=other.json")["comparisons"]
    assert all("case:lc|" in row["signature"] for row in rows)


def test_damaged_references_are_refused(folder):
    path = folder / "data" / "tiny" / "test.target.txt"
    path.write_text(path.read_text().replace("cat", "dog"))
    with pytest.raises(UserError, match="is damaged"):
        run(folder, "mle=one.json", "agg=other.json")


def test_translations_of_another_text_are_refused(folder):
    (folder / "other.json").write_text(json.dumps({"test": OTHER[1:]}))
    with pytest.raises(UserError, match="has 19 translations of test, but there are 20 references"):
        run(folder, "mle=one.json", "agg=other.json")
    (folder / "other.json").write_text(json.dumps({"valid": OTHER}))
    with pytest.raises(UserError, match=r"other\.json has no translations of test"):
        run(folder, "mle=one.json", "agg=other.json")
