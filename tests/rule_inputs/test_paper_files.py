"""Mistakes in a paper's files: each is one sentence with its place and the way out, before anything is trained."""

import shutil
from pathlib import Path

import pytest
import yaml

from rarepapers.core.errors import UserError
from rarepapers.experiments.run_table import load
from rarepapers.reporting.claims.quantities import comparisons
from rarepapers.reporting.claims.table_claims import printed_quantities
from rarepapers.reporting.paper_files import CLAIMS, NUMBERS
from rarepapers.reporting.results import Printed
from rarepapers.rule_inputs.report import check_paper_files

ROOT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
FIRST_NUMBER = "table1,Baseline,PPL,HR,5.04,perplexity,down,yes,,"
PLACE = "table1 | Proposed (margin=1) | PPL_best | LR against Baseline"
HEAD = ",".join(CLAIMS) + "\n"
CLAIM = f"stop_jostling.new,experiment,It is so,{PLACE},x,1,<,,,,,4,table,yes,"


@pytest.fixture
def check(tmp_path):
    """Check the config after a change to a file of a paper: a function of file, old text and new text."""
    shutil.copytree(ROOT / "config", tmp_path / "config")

    def changed(file, old, new, paper="stop_jostling", **choices):
        path = tmp_path / "config" / "papers" / paper / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        check_paper_files(load(CONFIG | {"papers": [paper]} | choices, tmp_path))

    return changed


def claim_with(**changes):
    cells = dict(zip(CLAIMS, CLAIM.split(","), strict=True)) | changes
    return ",".join(cells.values())


NUMBER_MISTAKES = [
    ("table1,", "tabel1,", "numbers.csv, line 2: there is no table 'tabel1'; did you mean 'table1'?"),
    ("Baseline,", "Baselin,", "numbers.csv, line 2: table1 has no row 'Baselin'; did you mean 'Baseline'?"),
    (",PPL,", ",PLP,", "numbers.csv, line 2: table1 has no column 'PLP'; did you mean 'PPL'?"),
    (",HR,", ",HRR,", "numbers.csv, line 2: table1 has no group 'HRR'; did you mean 'HR'?"),
    (",5.04,", ",5.O4,", "numbers.csv, line 2: value is '5.O4'; it must be a finite number or inf"),
    (",down,", ",dwon,", "numbers.csv, line 2: direction is 'dwon'; did you mean 'down'?"),
    (",down,", ",up,", "numbers.csv, line 2: direction is 'up', but perplexity is better down"),
    (",yes,,", ",yes,", "numbers.csv, line 2: 9 cells, but there are 10 columns"),
]


@pytest.mark.parametrize(("old", "new", "expected"), NUMBER_MISTAKES)
def test_a_mistake_in_printed_numbers_names_the_line(check, old, new, expected):
    with pytest.raises(UserError) as error:
        check("numbers.csv", FIRST_NUMBER, FIRST_NUMBER.replace(old, new, 1))
    assert str(error.value).endswith(f"config/papers/stop_jostling/{expected}")


CLAIM_MISTAKES = [
    ({"id": "jostling.new"}, "the id is 'jostling.new'; it must begin with 'stop_jostling' and a dot"),
    ({"kind": "experimnet"}, "kind is 'experimnet'; did you mean 'experiment'?"),
    ({"direction": "up"}, "direction is 'up'; it can be >, <, =, empty"),
    ({"null": ""}, "null is ''; it must be a finite number"),
    ({"measured_by": "tabel"}, "measured_by is 'tabel'; did you mean 'table'?"),
    (
        {"measured_by": "figure"},
        "there is no function new of workflow/rarepapers/papers/stop_jostling/claims.py; write it there",
    ),
    ({"quantity": PLACE.replace("table1", "tabel1")}, "there is no table 'tabel1'; did you mean 'table1'?"),
    ({"quantity": PLACE.replace("Baseline", "Basline")}, "table1 has no row 'Basline'; did you mean 'Baseline'?"),
    ({"quantity": PLACE.replace("PPL_best", "PPL_bset")}, "table1 has no column 'PPL_bset'; did you mean 'PPL_best'?"),
    ({"quantity": PLACE.replace("LR", "L R")}, "table1 has no group 'L R'; did you mean 'LR'?"),
    (
        {"quantity": "table1; PPL"},
        "'table1; PPL' is not written as `table | rows | columns | groups against rows`",
    ),
    (
        {"kind": "printed_arithmetic", "quantity": "table1 | Untied | PPL | LR"},
        "numbers.csv has no table1 | Untied | PPL | LR, which this sum needs",
    ),
]


@pytest.mark.parametrize(("changes", "expected"), CLAIM_MISTAKES)
def test_a_mistake_in_claims_names_the_line(check, changes, expected):
    with pytest.raises(UserError) as error:
        check("claims.csv", HEAD, HEAD + claim_with(**changes) + "\n")
    assert f"config/papers/stop_jostling/claims.csv, line 2: {expected}" in str(error.value)


def test_two_claims_with_one_id_are_refused(check):
    with pytest.raises(UserError, match=r"claims\.csv, line 3: the claim stop_jostling\.new is also in line 2"):
        check("claims.csv", HEAD, HEAD + 2 * (CLAIM + "\n"))


def test_a_claim_may_be_about_numbers_that_are_not_printed(check):
    quantity = "table1 | Proposed+SE (margin=1) [listing] | PPL_best | LR against Baseline"
    check("claims.csv", HEAD, HEAD + claim_with(quantity=quantity) + "\n")
    printed = {("table1", "Proposed (margin=1)", "PPL_best", "LR"): Printed("9", 9.0, "")}
    assert printed_quantities(comparisons(quantity), "x", printed) == [None]


@pytest.mark.parametrize(("file", "columns"), [("numbers.csv", NUMBERS), ("claims.csv", CLAIMS)])
@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (lambda names: names[:-1], "the column {} is missing"),
        (lambda names: [*names[:-1], f"{names[-1]}s"], "there is no column '{0}s'; did you mean '{0}'?"),
    ],
)
def test_columns_of_a_csv_are_checked(check, file, columns, changed, expected):
    names = list(columns)
    with pytest.raises(UserError) as error:
        check(file, ",".join(names) + "\n", ",".join(changed(names)) + "\n")
    assert str(error.value).endswith(f"{file}, line 1: {expected.format(names[-1])}")


def test_a_paper_without_its_csv_files_is_refused(tmp_path):
    shutil.copytree(ROOT / "config", tmp_path / "config")
    (tmp_path / "config/papers/agg/claims.csv").unlink()
    with pytest.raises(UserError, match=r"agg/claims\.csv does not exist; without entries it has one line: id,kind"):
        check_paper_files(load(CONFIG | {"papers": ["agg"]}, tmp_path))


PAPER_MISTAKES = [
    ("{metric: accuracy", "{metric: acuracy", "the metric 'acuracy'; did you mean 'accuracy'?"),
    ("{metric: accuracy", "{metric: bleu", "the metric 'bleu', which is not measured in shakespeare"),
    ("groups: [HR, LR]", "groups: [HR, LR, LRR]", "the group 'LRR'; did you mean 'LR'?"),
    ("methods: [baseline, monolingual", "methods: [basline, monolingual", "'basline'; did you mean 'baseline'?"),
    ("  column: PPL_best", "  column: PPL_bset", "headline.column is 'PPL_bset'; did you mean 'PPL_best'?"),
    ("  group: LR", "  group: RL", "headline.group is 'RL'"),
    ("  figure1: {title", "  figure99: {title", "figures.figure99: there is no function figure99 of workflow/"),
]


@pytest.mark.parametrize(("old", "new", "expected"), PAPER_MISTAKES)
def test_a_misspelt_name_in_a_paper_names_the_one_that_was_meant(check, old, new, expected):
    with pytest.raises(UserError) as error:
        check("paper.yaml", old, new)
    assert "config/papers/stop_jostling/paper.yaml: " in str(error.value)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)
