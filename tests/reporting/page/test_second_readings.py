"""Second readings of negative claims: the lines in config, and their table in the report."""

from pathlib import Path

import pytest

from rarepapers.core.errors import UserError
from rarepapers.reporting.claims.verdicts import DISAGREES, FAILS_HERE
from rarepapers.reporting.csv_rows import read_rows
from rarepapers.reporting.page.second_readings import CHECKED, FILE, RIGHT, SCALES, WRONG, second_readings

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / "config" / "papers"
COLUMNS = ["id", *CHECKED, "scale", "run", "note"]
LINES = [row for path in sorted(CONFIG.glob(f"*/{FILE}")) for row in read_rows(path)]


def test_every_recorded_negative_claim_has_a_line():
    recorded = read_rows(ROOT / "results" / "recorded" / "small" / "claims.csv")
    negative = [row["id"] for row in recorded if row["verdict"] in DISAGREES]
    assert negative
    assert set(negative) <= {row["id"] for row in LINES}


@pytest.mark.parametrize("row", LINES, ids=lambda row: row["id"])
def test_a_line_answers_every_question(row):
    assert list(row) == COLUMNS
    assert all(row[name] == RIGHT or row[name].startswith(WRONG) for name in CHECKED)
    (said,) = [row["scale"].removeprefix(head) for head in SCALES if row["scale"].startswith(head)]
    assert 0 < len(said.split()) <= 20
    assert row["run"]
    assert row["note"]


def test_ids_are_those_of_claims():
    for path in CONFIG.glob(f"*/{FILE}"):
        ids = [row["id"] for row in read_rows(path)]
        assert len(ids) == len(set(ids))
        assert set(ids) <= {row["id"] for row in read_rows(path.with_name("claims.csv"))}


CLAIM = {"id": "made_up.0", "sentence": "A is larger", "verdict": FAILS_HERE}


def published(folder, claim):
    (folder / "made_up").mkdir()
    line = f"{claim},right,right,right,wrong: too early,unclear: why,a run,recomputed"
    (folder / "made_up" / FILE).write_text(",".join(COLUMNS) + f"\n{line}\n", encoding="utf-8")
    return folder


def test_a_line_has_its_claims_sentence_and_verdict(tmp_path):
    (row,) = second_readings(published(tmp_path, "made_up.0"), "made_up", [CLAIM])
    assert (row["sentence"], row["verdict"], row["stage"]) == ("A is larger", FAILS_HERE, "wrong: too early")


def test_a_claim_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"has a line on made_up\.1, which \S*claims\.csv does not have; correct"):
        second_readings(published(tmp_path, "made_up.1"), "made_up", [CLAIM])


def test_a_paper_without_the_file_has_none(tmp_path):
    assert second_readings(tmp_path, "made_up", [CLAIM]) == []


def test_the_page_of_a_paper_shows_them(page):
    text = page.pages["agg"]
    assert f"Each negative twice: {len(read_rows(CONFIG / 'agg' / FILE))} claims</summary>" in text
    (row,) = [line for line in text.split("\n") if 'href="#claim-agg.t14.cross_lingual"' in line]
    assert "quantity wrong: the queries occur" in row
    assert "all right" not in row
    assert "Each negative twice: 3 claims" in page.pages["stop_jostling"]
