"""Table layout: groups as columns, arrows, names, rows without numbers."""

from rarepapers.reporting.table_layout import MOST_COLUMNS, layout, readable
from rarepapers.reporting.tables.cells import Cell

GROUPS = ("freq", "med", "rare")


def grid(rows=("MLE", "AGG"), columns=("PPL", "Uniq"), groups=GROUPS, **more):
    return [Cell(row, column, group, value=1.0, **more) for row in rows for group in groups for column in columns]


def test_groups_are_columns_below_their_metric():
    shown = layout(grid())
    assert [(title, groups) for _, title, groups in shown.columns] == [("PPL", GROUPS), ("Uniq", GROUPS)]
    assert [row for row, *_ in shown.rows] == ["MLE", "AGG"]
    assert shown.two_lines
    assert not shown.grouped


def test_a_group_without_numbers_has_no_column():
    cells = [*grid(columns=("PPL",)), Cell("MLE", "I(W)", "freq"), Cell("MLE", "I(W)", "rare", value=0.5)]
    assert layout(cells).heads == ["PPL freq", "PPL med", "PPL rare", "I(W) rare"]


def test_wide_tables_and_texts_keep_groups_as_rows():
    wide = layout(grid(columns=[f"m{k}" for k in range(MOST_COLUMNS // 3 + 1)]))
    assert wide.grouped
    assert [(row, group, span) for row, group, _, span in wide.rows][:4] == [
        ("MLE", "freq", 3),
        ("MLE", "med", 0),
        ("MLE", "rare", 0),
        ("AGG", "freq", 3),
    ]
    assert layout([Cell("MLE", "Text", group, value="words") for group in GROUPS]).grouped


def test_one_group_needs_no_name():
    assert layout(grid(groups=("total",))).heads == ["PPL", "Uniq"]


def test_arrows_point_in_the_better_direction_and_names_are_readable():
    cells = [
        Cell("a", "PPL_best", value=1.0, direction="down"),
        Cell("a", "MRR", value=1.0, direction="up"),
        Cell("a", "margin_init_sigma", value=1.0),
    ]
    assert layout(cells).heads == ["PPL at best T ↓", "MRR ↑", "its σ"]
    assert [row for row, *_ in layout([Cell("weight_decay", "value", value=0.1)]).rows] == ["weight decay"]
    assert layout([Cell("x", "a_LR", value="b 0.4")]).heads == ["a_LR"]


def test_a_reading_that_was_not_run_has_no_row():
    cells = [
        Cell("SE", "PPL", published="2"),
        Cell("SE [listing]", "PPL", published="2"),
        Cell("SE [matrix]", "PPL", published="2", value=3.0),
        Cell("neither", "PPL"),
    ]
    assert [row for row, *_ in layout(cells).rows] == ["SE", "SE [matrix]"]


def test_keys_in_texts_have_the_names_of_their_columns():
    said = readable("MLE (PPL_best LR, margin_PT, margin_PT_sigma): hidden_dimension of iwslt14_de-en, mu_1, a_LR.")
    assert said == (
        "MLE (PPL at best T LR, margin (pre-trained), σ of margin (pre-trained)): "
        "hidden dimension of iwslt14_de-en, mu_1, a_LR."
    )
