"""The command `compare-recorded`: significance tests between the recorded translations of an experiment and seed.

Recorded runs come from several days and machines, and `work` compares nothing, so the tests are made where all
translations are.
"""

import argparse
from collections import defaultdict
from pathlib import Path

from rarepapers.core.files import read_json, write_json
from rarepapers.data.pairs.prepared_pairs import load_pairs
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.experiments import config_options
from rarepapers.experiments.grids import has_candidates
from rarepapers.experiments.run_table import RunTable, load
from rarepapers.metrics.translation_tests import SPLIT, compare_systems, digest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `compare-recorded`."""
    config_options.add_arguments(parser)
    parser.add_argument("--data", type=Path, required=True, help="prepared corpora, such as results/small/data")


def main(arguments: argparse.Namespace) -> None:
    """Write the comparisons that are missing or were made of other translations, and print their paths."""
    config = config_options.config_of(arguments) | {"recorded": True}
    for path in compare_recorded(load(config, arguments.root, arguments.project), arguments.data):
        print(f"compared the translations of {path.parent.name}, {path.stem}")


def compare_recorded(table: RunTable, data: Path) -> list[Path]:
    """Compare the recorded translations of every experiment and seed that changed; returns the files written.

    Left out, as in the report: papers whose methods have candidates, and runs of other settings than the config has
    now. Left as they are, with a line that says so: comparisons whose corpus is not in `data`.
    """
    systems = defaultdict(dict)
    for run in table.runs.values():
        folder = table.root / table.folder(run)
        if has_candidates(table.papers[run.paper]) or not table.is_measured_in(run, folder):
            continue
        if (folder / "hypotheses.json").exists():
            key = (run.experiment, run.seed, run.settings["corpus"]["name"])
            systems[key][run.method] = read_json(folder / "hypotheses.json")[SPLIT]
    written = []
    for (experiment, seed, corpus), translations in systems.items():
        manifest = data / corpus / "manifest.json"
        path = table.root / table.results / "comparisons" / experiment / f"seed{seed}.json"
        digests = {method: digest(lines) for method, lines in translations.items()}
        if len(translations) < 2 or (path.exists() and read_json(path).get("hypotheses") == digests):
            continue
        if not manifest.exists():
            print(f"not compared: the translations of {experiment}, seed{seed}: {manifest} does not exist")
            continue
        prepared = load_manifest(manifest)
        found = compare_systems(translations, load_pairs(prepared, SPLIT).texts("target"), prepared.scoring)
        write_json(path, {"split": SPLIT} | found)
        written.append(path)
    return written
