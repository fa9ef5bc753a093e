"""The command `compare` on files written by `evaluate`."""

import argparse
import json

import pytest

from raretok.core.errors import UserError
from raretok.evaluation import compare_command
from raretok.metrics.translation_tests import compare

REFERENCES = [
    "the cat sat on the mat .",
    "a dog ran under the house .",
    "green is old .",
    "one two three four five",
] * 5
ONE = [line.replace("cat", "dog") for line in REFERENCES]
OTHER = [line.rpartition(" ")[0] for line in REFERENCES]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "references.txt").write_text("\n".join(REFERENCES) + "\n")
    for name, lines in (("one", ONE), ("other", OTHER)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"test": lines}))
    return tmp_path


def run(folder, *hypotheses):
    parser = argparse.ArgumentParser()
    compare_command.add_arguments(parser)
    options = ["--references", folder / "references.txt", "--samples", 50, "--output", folder / "out.json"]
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
    for row, one in zip(rows[:4], compare(ONE, OTHER, REFERENCES, samples=50), strict=True):
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


def test_references_are_read_line_by_line(folder):
    expected = run(folder, "mle=one.json", "agg=other.json")["comparisons"]
    path = folder / "references.txt"
    # Another line separator inside a line, and no line end after the last line.
    path.write_bytes("\r\n".join(REFERENCES).encode())
    assert run(folder, "mle=one.json", "agg=other.json")["comparisons"] == expected
    path.write_text("\n".join(line.replace(" ", "\u2028", 1) for line in REFERENCES))
    assert run(folder, "mle=one.json", "agg=other.json")["sentences"] == 20
    path.write_bytes(b"a\n\xff\n")
    with pytest.raises(UserError, match=r"references.txt is not UTF-8: .* in line 2"):
        run(folder, "mle=one.json", "agg=other.json")
    path.unlink()
    with pytest.raises(UserError, match=r"references.txt does not exist"):
        run(folder, "mle=one.json", "agg=other.json")


def test_translations_of_another_text_are_refused(folder):
    (folder / "other.json").write_text(json.dumps({"test": OTHER[1:]}))
    with pytest.raises(UserError, match="has 19 translations of test, but there are 20 references"):
        run(folder, "mle=one.json", "agg=other.json")
    (folder / "other.json").write_text(json.dumps({"valid": OTHER}))
    with pytest.raises(UserError, match=r"other\.json has no translations of test"):
        run(folder, "mle=one.json", "agg=other.json")
