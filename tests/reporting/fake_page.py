"""Synthetic report of two papers, with hostile text in every field that a run can fill."""

import copy
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import fake_language
import numpy as np
from fake_results import PUBLISHED, make_report

from rarepapers.__main__ import main

HOSTILE = (
    "</td><script>window.hostile=1</script><img src=https://example.org/x onerror=window.hostile=1> & \"' \\ {{ 7*7 }}"
)
# A few items of both papers, one of each kind.
SHOWN = {
    "stop_jostling": {
        "tables": ("table1", "table2", "table3", "table4", "table7", "readings-S6"),
        "figures": ("figure1", "figure7"),
    },
    "agg": {"tables": ("table3", "table5"), "figures": ("figure3",)},
}


def shown_of(raw: dict) -> dict:
    """A paper with its few items."""
    return raw | {kind: {item: raw[kind][item] for item in items} for kind, items in SHOWN[raw["paper"]].items()}


def make_page(folder: Path, scale: SimpleNamespace) -> SimpleNamespace:
    """The pages of a copy of the synthetic `scale` and of another paper, whose second seed was not run."""
    for name in ("runs", "gpt2"):
        shutil.copytree(scale.folder / name, folder / name)
    stop, agg = shown_of(scale.definition), shown_of(fake_language.definition_of("agg"))
    once = copy.deepcopy(agg)
    for method in once["methods"].values():
        method["seeds"] = [1]
    paths = fake_language.write_results(folder, once, only="language_model")
    for path in paths:
        with np.load(path.parent / "arrays.npz") as archive:
            arrays = dict(archive)
        arrays["best.generated.texts"] = np.array([HOSTILE] * 5)
        np.savez(path.parent / "arrays.npz", **arrays)
    metrics = [str(path) for path in sorted(folder.glob("runs/*/*/*/metrics.json"))]
    assert main(["collect", "--metrics", *metrics, f"--output={folder / 'metrics.csv'}"]) == 0
    for raw in (stop, agg):
        for command, kind in (("table", "tables"), ("figure", "figures")):
            for item in raw[kind]:
                made = [f"--item={item}", f"--definition={json.dumps(raw)}", f"--results={folder}"]
                more = [f"--published={PUBLISHED}"] if command == "table" else []
                stem = folder / kind / raw["paper"] / item
                assert main([command, *made, *more, f"--output-stem={stem}"]) == 0
    output = make_report(
        folder, json.dumps(stop), json.dumps(agg), command="snakemake --cores all --config scale=small"
    )
    pages = {path.stem: path.read_text(encoding="utf-8") for path in output.parent.glob("*.html")}
    return SimpleNamespace(path=output, folder=folder, pages=pages)
