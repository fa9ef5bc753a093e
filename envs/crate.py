"""Packs the results of a scale with their workflow as a Workflow Run RO-Crate:  python envs/crate.py RESULTS ZIP

RESULTS is results/SCALE or results/recorded/SCALE. The crate holds metrics, histories, tables, figures, verdicts and
pages, the config and the workflow's files; no weights and no data sets, whose terms differ. One action says that the
workflow made these results from the config; metrics.json of every run names the commit, versions and device of its
training.
"""

import datetime
import json
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
INPUTS = ("config/**/*.yaml", "config/**/*.csv", "workflow/rules/*.smk", "envs/requirements.txt", "CITATION.cff")
RESULTS = ("*.csv", "report/*", "tables/*/*", "figures/*/*", "runs/*/*/*/metrics.json", "runs/*/*/*/history.csv")
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}


def main(results: Path, output: Path) -> str:
    """Write the crate; returns what is wrong, or nothing."""
    try:
        from rocrate.model.contextentity import ContextEntity
        from rocrate.rocrate import ROCrate
    except ImportError:
        return "the package rocrate is not installed; type: .venv/bin/python -m pip install rocrate"
    paths = sorted(results.glob("runs/*/*/*/metrics.json"))
    if not paths:
        return f"{results} holds no evaluated run; run the workflow at that scale first"
    commits = sorted({json.loads(path.read_text(encoding="utf-8"))["training"]["commit"] for path in paths})
    crate = ROCrate(version="1.1")
    crate.name, crate.license = f"raretok, scale {results.name}", "https://spdx.org/licenses/MIT"
    crate.description = f"Four papers on rare tokens in neural language generation, reproduced: {len(paths)} runs"
    crate.root_dataset["conformsTo"] = [
        crate.add(ContextEntity(crate, url, {"@type": "CreativeWork", "name": name, "version": url.rpartition("/")[2]}))
        for url, name in PROFILES.items()
    ]
    workflow = crate.add_workflow(PROJECT / "Snakefile", "Snakefile", main=True, lang="snakemake")
    used = [crate.add_file(path, path.relative_to(PROJECT)) for path in found(PROJECT, INPUTS)]
    made = [crate.add_file(path, Path("results") / path.relative_to(results)) for path in found(results, RESULTS)]
    ended = datetime.datetime.fromtimestamp(max(path.stat().st_mtime for path in paths), datetime.UTC)
    facts = {"name": "run of the workflow", "description": f"Commits of the trainings: {', '.join(commits)}"}
    facts |= {"endTime": ended.isoformat(timespec="seconds")}
    crate.root_dataset["mentions"] = crate.add_action(workflow, "#run", used, made, facts)
    crate.write_zip(output)
    print(output)
    return ""


def found(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    """The files below a folder that match one of the patterns."""
    return [path for pattern in patterns for path in sorted(folder.glob(pattern)) if path.is_file()]


if __name__ == "__main__":
    if reason := main(*map(Path, sys.argv[1:])):
        sys.exit(f"raretok: {reason}")
