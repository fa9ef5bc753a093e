"""A report page of two papers, made up, with hostile text wherever a run can bring text in."""

import copy
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import fake_language
import numpy as np
from fake_results import PUBLISHED, item_of, write_cost

from raretok.__main__ import main

HOSTILE = (
    "</td><script>window.hostile=1</script><img src=https://example.org/x onerror=window.hostile=1> & \"' \\ {{ 7*7 }}"
)
SHOWN = {"tables": ("table3", "table5"), "figures": ("figure3",)}


def agg_definition() -> dict:
    """A paper of language models with a few items, its second seed never run."""
    raw = fake_language.definition_of("agg")
    return raw | {kind: {item: raw[kind][item] for item in items} for kind, items in SHOWN.items()}


def make_page(folder: Path, scale: SimpleNamespace) -> SimpleNamespace:
    """The page below a copy of the made-up `scale`, whose figures are drawn."""
    shutil.copytree(scale.folder, folder)
    agg = agg_definition()
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
    for raw in (scale.definition, agg):
        for item in raw["tables"]:
            text = item_of(raw, item) if raw is not agg else fake_language.item_of(raw, item)
            stem = folder / "tables" / raw["paper"] / item
            common = [f"--definition={text}", f"--results={folder}", f"--published={PUBLISHED}"]
            assert main(["table", f"--item={item}", *common, f"--output-stem={stem}"]) == 0
    for item in agg["figures"]:
        stem = folder / "figures" / "agg" / item
        common = [f"--definition={fake_language.item_of(agg, item)}", f"--results={folder}"]
        assert main(["figure", f"--item={item}", *common, f"--output-stem={stem}"]) == 0
    write_cost(folder)
    definitions = [json.dumps(scale.definition), json.dumps(agg)]
    common = ["--definitions", *definitions, f"--results={folder}", f"--published={PUBLISHED}"]
    assert main(["claims", *common, f"--output={folder / 'claims.csv'}"]) == 0
    assert main(["agreement", *common, f"--output={folder / 'agreement.csv'}"]) == 0
    assert main(["improvement", *common, f"--output={folder / 'improvement.csv'}"]) == 0
    output = folder / "report" / "index.html"
    assert main(["page", *common, "--command=snakemake --cores all --config scale=small", f"--output={output}"]) == 0
    return SimpleNamespace(path=output, folder=folder, text=output.read_text(encoding="utf-8"), common=common)
