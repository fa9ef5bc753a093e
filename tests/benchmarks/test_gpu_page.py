"""The tables of docs/gpu.md have the numbers of benchmarks/measured."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/gpu.md").read_text(encoding="utf-8")
SESSIONS = ("h100_2026-11-26", "h100_2026-11-26_second", "h100_2026-11-27")
# Pairs of columns of the first table: milliseconds and MiB.
TABLES = ("empirical, layer alone", "empirical, whole step", "gpt2-medium, layer alone", "gpt2-medium, whole step")
# Names that the page writes longer.
NAMES = {"plain autograd": "plain", "Liger 0.8.5": "Liger", "Entropy 25.1.1, exact": "Entropy (exact)"}


def measured(session: str) -> list[dict]:
    """All lines of a session."""
    lines = (ROOT / f"benchmarks/measured/{session}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def rows_after(words: str) -> list[list[str]]:
    """The cells of the first table after these words, without its head."""
    lines = PAGE[PAGE.index(words) :].splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def layers(session: str) -> dict[tuple[str, str], tuple[float, float]]:
    """(ms, MiB) by table and row."""
    found, table = {}, ""
    for line in measured(session):
        if line["stage"] == "layer" and "table" in line:
            table = line["table"].partition(":")[0]
        elif line["stage"] == "layer" and "values" in line:
            found.setdefault((table, line["row"]), (line["values"][0], line["values"][3]))  # later ones are other code
    return found


def test_the_output_layer():
    """The second session, and in italics what it lacks, from the first."""
    first, second = layers(SESSIONS[0]), layers(SESSIONS[1])
    rows = rows_after("Output layer, alone with its gradients")
    assert len(rows) > 12
    for name, *cells in rows:
        for long, short in NAMES.items():
            name = name.replace(long, short)
        for table, pair in zip(TABLES, zip(cells[::2], cells[1::2], strict=True), strict=True):
            if pair == ("", ""):
                continue
            in_italics = pair[0].startswith("*")
            numbers = (first if in_italics else second)[table, name]
            ms, mib = (float(text.strip("*").replace(",", "")) for text in pair)
            assert abs(ms - numbers[0]) < 0.0501, (name, table)  # halves were rounded up
            assert mib == numbers[1], (name, table)
            assert not in_italics or (table, name) not in second


def test_whole_steps():
    lines = [line for line in measured(SESSIONS[2]) if line.get("preset") == "empirical"]
    for name, *cells in rows_after("The rows took turns"):
        row, chunks, _ = name.partition(", six chunks")
        known: dict = {}
        for line in lines:
            if line["row"] == row and line.get("chunk_mib", 420) == (470 if chunks else 420):
                known |= line
        unit = {"ms": 0.01, "of_compiled": 0.001, "least": 0.01, "mib": 1, "kernels": 1, "kernel_ms": 0.1}
        for (key, last_digit), cell in zip(unit.items(), cells, strict=True):
            assert not cell or abs(float(cell.replace(",", "")) - known[key]) < 0.501 * last_digit, (name, key)
