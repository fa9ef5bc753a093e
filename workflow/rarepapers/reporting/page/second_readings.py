"""Second readings of claims: what a reader who wrote neither the claim nor its code found on deriving it again."""

from pathlib import Path

from rarepapers.core.errors import UserError
from rarepapers.reporting.csv_rows import read_rows

FILE = "second_readings.csv"
RIGHT, WRONG = "right", "wrong: "
# What is checked, each `right` or `wrong: ...`.
CHECKED = ("quantity", "direction", "unit", "stage")
# First words of the column `scale`: whether the reduced scale alone could explain the verdict.
SCALES = ("could explain: ", "cannot: ", "unclear: ")


def second_readings(published: Path, paper: str, claims: list[dict]) -> list[dict[str, str]]:
    """The rows of config/papers/<paper>/second_readings.csv, each with its claim's `sentence` and `verdict`.

    Empty for a paper without the file. Raises UserError for a claim that does not exist.
    """
    path = published / paper / FILE
    if not path.exists():
        return []
    known = {claim["id"]: claim for claim in claims}
    rows = read_rows(path)
    for row in rows:
        if row["id"] not in known:
            raise UserError(
                f"{path} has a line on {row['id'] or 'no claim'}, which {path.with_name('claims.csv')} does not have; "
                "correct its id or remove the line"
            )
    return [row | {name: known[row["id"]][name] for name in ("sentence", "verdict")} for row in rows]
