"""Runs of the project's run table, for stages that train or try every method."""

from pathlib import Path

import yaml

from rarepapers.core.config_files import canonical_json
from rarepapers.experiments.run_table import RunTable, load

ROOT = Path(__file__).parents[2]


def table(scale: str, **changes) -> RunTable:
    """The run table of a scale, one seed."""
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
    return load(config | {"scale": scale, "seeds": 1} | changes, ROOT)


def distinct_methods(scale: str) -> dict[str, tuple[dict, dict | None]]:
    """Every combination of parts in the runs: its first name -> its config, and what scaled runs derive from."""
    found = {}
    for run in table(scale).runs.values():
        method = {key: value for key, value in run.settings["method"].items() if key != "observe"}
        name = f"{run.paper}/{run.method}"
        found.setdefault(canonical_json(method), (name, method, run.settings["training"].get("rare")))
    return {name: (method, rare) for name, method, rare in found.values()}
