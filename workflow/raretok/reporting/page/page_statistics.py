"""agreement.csv, improvement.csv and paired tests as the pages show them: a paper's rows, three digits a number."""

from raretok.reporting.page.page_claims import short
from raretok.reporting.page.paired_tests import PairedTest

# Which values of a column are better, in words.
BETTER = {"up": "higher", "down": "lower", "": ""}


def agreement_rows(rows: list[dict[str, str]], paper: str) -> list[tuple[str, ...]]:
    """A paper's rows of agreement.csv; what a row has no number for is empty."""
    return [
        (
            *(row[key] for key in ("item", "column", "group", "rows", "seeds", "pairs")),
            *(_number(row[key]) for key in ("sign_agreement", "kendall_tau", "spearman", "cv_star")),
            row["note"],
        )
        for row in rows
        if row["paper"] == paper
    ]


def improvement_rows(rows: list[dict[str, str]], paper: str) -> list[tuple[str, ...]]:
    """A paper's rows of improvement.csv, each number with its interval."""
    return [
        (
            *(row[key] for key in ("item", "row", "against", "column", "group")),
            BETTER[row["better"]],
            row["seeds"],
            _number(row["difference"]) + _interval(row["lower"], row["upper"]),
            _interval(row["bootstrap_lower"], row["bootstrap_upper"]).strip(),
            _number(row["probability"]) + _interval(row["probability_lower"], row["probability_upper"]),
        )
        for row in rows
        if row["paper"] == paper
    ]


def paired_test_rows(tests: list[PairedTest]) -> list[tuple]:
    """A row for each paired test of translations."""
    return [
        (
            *(f"{test.experiment}: {test.corpus}", test.seed, test.system, test.baseline, test.metric),
            *(f"{test.value:.2f}", f"{test.baseline_value:.2f}", f"{test.difference:+.2f}"),
            *(f"{test.p['bootstrap']:.4f}", f"{test.p['randomisation']:.4f}"),
        )
        for test in tests
    ]


def _number(value: str) -> str:
    return short(value) if value else ""


def _interval(lower: str, upper: str) -> str:
    return f" [{short(lower)}, {short(upper)}]" if lower else ""
