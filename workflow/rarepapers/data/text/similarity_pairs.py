"""Word pairs with similarity scores, human or synthetic."""

import math
from pathlib import Path

from rarepapers.core.errors import UserError
from rarepapers.data.lines import numbered_lines


def read_pairs(path: Path) -> list[tuple[str, str, float]]:
    """The pairs in the file at `path`, in file order.

    A line has two words and a score, separated by tabs or blanks; anything after them is ignored. MEN (natural form),
    the combined WordSim-353, RG65, RW and our own similarity.tsv all have this form. A first line whose third field has
    no digit is a header.

    Raises UserError from `numbered_lines`, if the file has no pairs, or if another line has no finite score.
    """
    pairs = []
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        fields = line.split("\t") if "\t" in line else line.split()
        try:
            score = float(fields[2])
            if not math.isfinite(score):
                raise UserError(f"{path}, line {number}: the score {fields[2]} is not a finite number")
            pairs.append((fields[0].strip(), fields[1].strip(), score))
        except (IndexError, ValueError) as error:
            if number == 1 and len(fields) > 2 and not any(character.isdigit() for character in fields[2]):
                continue
            raise UserError(f"{path}, line {number} is no pair of words with a score: {line[:80]!r}") from error
    if not pairs:
        raise UserError(f"{path} has no pairs of words; get it again")
    return pairs
