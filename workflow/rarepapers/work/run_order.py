"""Order of runs: that of a file, or baselines and headline methods first."""

import json
import re
from pathlib import Path

from rarepapers.core.errors import UserError
from rarepapers.experiments.run_table import RUN_NAME, Run, RunTable


def read_order(path: Path) -> list[str]:
    """Names of runs (EXPERIMENT/METHOD/seedN) in `path`, each once, in order.

    The file has one run per line, as a name or a line of `runs --json`; or it is the JSON list of `plan
    --claims --json`. Text after a name, and further keys of an object, are ignored. Raises UserError if it names no
    run, or something that is not a run.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}, the file of --order, cannot be read: {error}") from None
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    try:
        if text.startswith("["):
            entries = json.loads(text)
        else:
            entries = [json.loads(line) if line.startswith("{") else line.split()[0] for line in lines]
    except ValueError:
        entries = []
    names = [_name(entry, path) for entry in entries]
    if not names:
        raise UserError(f"{path} names no run; write EXPERIMENT/METHOD/seedN, one per line")
    return list(dict.fromkeys(names))


def _name(entry: str | dict, path: Path) -> str:
    """The run named by an entry."""
    if isinstance(entry, dict):
        entry = RUN_NAME.format(**{"experiment": "", "method": "", "seed": ""} | entry)
    if not (isinstance(entry, str) and re.fullmatch(r"[^/]+/[^/]+/seed\d+", entry)):
        raise UserError(f"{path} names {entry!r}, which is no run; write EXPERIMENT/METHOD/seedN")
    return entry


def named_seeds(names: list[str]) -> list[int]:
    """The seeds of the named runs."""
    return sorted({int(name.rpartition("seed")[2]) for name in names})


def order_runs(table: RunTable, names: list[str] | None = None) -> list[Run]:
    """The runs `names` of a table, or all: baselines and headline methods, then the rest, then further seeds.

    Ties are in the order of the config. Raises UserError for a name that is not in the table.
    """
    if names is not None:
        return [table.named(name) for name in names]
    # The methods that the README shows of a paper, and the baseline.
    headline = {
        paper: {next(iter(settings["methods"])), *settings.get("headline", {}).get("methods", [])}
        for paper, settings in table.papers.items()
    }
    first: dict[tuple[str, str], int] = {}
    for run in table.runs.values():
        first.setdefault((run.experiment, run.method), run.seed)

    def rank(run: Run) -> tuple[bool, int]:
        is_further = run.seed != first[run.experiment, run.method]
        return is_further, run.seed if is_further else run.method not in headline[run.paper]

    return sorted(table.runs.values(), key=rank)
