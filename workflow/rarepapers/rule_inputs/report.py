"""Inputs and params of the reporting rules, and the definition of a paper for the report.

Wildcards are paper and item.
"""

import hashlib
import json
import os
import shlex
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace

from rarepapers.core.errors import UserError
from rarepapers.data.catalogue import corpus_title
from rarepapers.experiments.grids import has_candidates
from rarepapers.experiments.run_table import Run, RunTable, paper_ids
from rarepapers.reporting import paper_files
from rarepapers.reporting.definition import definition_of
from rarepapers.rule_inputs.evaluate import translating
from rarepapers.rule_inputs.per_job import per_job

FORMS = {"tables": ("csv", "md", "tex"), "figures": ("svg", "png", "pdf")}
# Folders of measurements in a scale's results.
MEASURED = ("runs", "comparisons", "gpt2")
# Kinds of tables with a file of printed values of their own.
PRINTED = ("neighbours", "hyperparameters")


# Items of a paper.


def items(table: RunTable, paper: str) -> list[str]:
    """All tables and figures of a paper, in every format."""
    folder, settings = table.rendered, table.papers[paper]
    return [
        f"{folder}/{kind}/{paper}/{item}.{form}" for kind in FORMS for item in settings[kind] for form in FORMS[kind]
    ]


def items_or_refusal(table: RunTable, paper: str) -> list[str] | Callable:
    """The `items` of a chosen paper; of another one, an input function that says how it is chosen."""
    return items(table, paper) if paper in table.papers else partial(_refuse_paper, table, paper)


def _refuse_paper(table: RunTable, paper: str, wildcards) -> list[str]:
    chosen = ",".join((*table.papers, paper))
    raise UserError(
        f"{paper} is not among the config's papers; add it to config/config.yaml, or --config papers=[{chosen}]"
    )


def all_items(table: RunTable) -> list[str]:
    """All tables and figures of all papers, in every format."""
    return [path for paper in table.papers for path in items(table, paper)]


def pages(table: RunTable) -> list[str]:
    """The pages of the report: index, one per paper, and common ones; and the picture of the README.

    The names are those of reporting/page, whose import would slow down every dry run.
    """
    names = [f"{page}.html" for page in ("index", *table.papers, "method", "cost", "provenance")]
    return [f"{table.rendered}/report/{name}" for name in (*names, "overview.svg")]


def readme(table: RunTable) -> list[str]:
    """The README, whose findings are those on the recorded results, for a report of all of these; else nothing."""
    shows_all = set(paper_ids(table.project)) <= set(table.papers) and not table.config["seeds"]
    is_own = table.root.resolve() == table.project.resolve()
    return ["README.md"] if table.config["recorded"] and shows_all and is_own else []


def second_readings(table: RunTable) -> list[str]:
    """The second readings of claims, of the papers that have some."""
    paths = (table.project / "config" / "papers" / paper / "second_readings.csv" for paper in table.papers)
    return [str(path) for path in paths if path.exists()]


def entry(table: RunTable, wildcards) -> dict:
    """The config entry of a table or figure; raises UserError if there is none."""
    entries = table.papers[wildcards.paper]["tables"] | table.papers[wildcards.paper]["figures"]
    if wildcards.item not in entries:
        raise UserError(
            f"config/papers/{wildcards.paper}/paper.yaml has no table or figure {wildcards.item!r}; "
            f"it has {', '.join(entries)}"
        )
    return entries[wildcards.item]


# Measurements that items are made from.


def metrics(table: RunTable) -> list[str]:
    """metrics.json of every run."""
    return available(table, [f"{table.folder(run)}/metrics.json" for run in table.runs.values()])


def link_measurements(table: RunTable) -> None:
    """Show recorded measurements in the folder in which they are rendered."""
    if table.rendered == table.results:
        return
    folder = table.root / table.rendered
    folder.mkdir(parents=True, exist_ok=True)
    for name in MEASURED:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(os.path.relpath(table.root / table.results / name, folder))


def check_measured(table: RunTable) -> None:
    """Raises UserError if finished runs are to be shown but none is of the chosen papers, seeds and settings."""
    if table.render_only and not metrics(table):
        raise UserError(
            f"{table.results} has no finished runs of the chosen papers and seeds with the config's settings; choose "
            "others, or leave out finished=true or recorded=true to train"
        )


def check_paper_files(table: RunTable) -> None:
    """Raises UserError for a mistake in a paper's csv files, with file and line, and for a function that is missing."""
    for paper in table.papers:
        paper_files.check_paper_files(
            definition_of(definition(table, paper)), table.project / "config" / "papers" / paper
        )


def available(table: RunTable, paths: list[str]) -> list[str]:
    """`paths`, or only the existing and current ones if finished runs are shown without running anything."""
    if not table.render_only:
        return paths
    old = set(outdated(table))
    return [path for path in paths if (table.root / path).exists() and str(Path(path).parent) not in old]


@lru_cache(maxsize=4)
def outdated(table: RunTable) -> list[str]:
    """Folders of finished or recorded runs whose settings have changed in the config; they count as missing."""
    if not table.render_only:
        return []
    return [folder for run in table.runs.values() if _is_outdated(table, run, folder := table.folder(run))]


def _is_outdated(table: RunTable, run: Run, folder: str) -> bool:
    return (table.root / folder / "metrics.json").exists() and not table.is_measured_in(run, table.root / folder)


@per_job
def measurements(table: RunTable, wildcards) -> list[str]:
    """metrics.json and arrays.npz of the runs in a table or figure, or the measurements of GPT-2."""
    paper, shown = wildcards.paper, entry(table, wildcards)
    if shown.get("kind") == "gpt2":
        return _gpt2_measured(table, paper)
    methods = definition_of(definition(table, paper)).behind(wildcards.item)
    folders = (method.run_folder(Path(table.results), seed) for method in methods for seed in method.seeds)
    return available(table, [f"{folder}/{name}" for folder in folders for name in ("metrics.json", "arrays.npz")])


def _first_experiment(table: RunTable, paper: str, method: str) -> str:
    """A method's first experiment at this scale, or, if it leaves the method out, of all."""
    published = table.published[paper]
    trained = table.experiments_of(paper, method)
    return (trained or published["methods"][method].get("experiments") or list(published["experiments"]))[0]


def comparisons(table: RunTable) -> list[str]:
    """Comparisons of all experiments that translate with more than one method, for each seed.

    Papers with candidates have none, because most candidates stand for no method and the page shows no test of them. If
    finished runs are shown, comparisons with an outdated translation are left out.
    """
    translated = [
        name
        for paper in table.papers.values()
        if not has_candidates(paper)
        for name, experiment in paper["experiments"].items()
        if table.corpora[experiment["corpus"]["name"]]["kind"] == "translation"
    ]
    old = set(outdated(table))
    return available(
        table,
        [
            f"{table.results}/comparisons/{experiment}/seed{seed}.json"
            for experiment in translated
            for seed in table.seeds
            if len(runs := translating(table, experiment, seed)) > 1 and old.isdisjoint(map(table.folder, runs))
        ],
    )


def gpt2_measured(table: RunTable) -> list[str]:
    """Measurements of all GPT-2 models of the papers."""
    return [path for paper in table.papers for path in _gpt2_measured(table, paper)]


def _gpt2_measured(table: RunTable, paper: str) -> list[str]:
    models = table.papers[paper].get("gpt2", {"models": {}})["models"]
    return available(table, [f"{table.results}/gpt2/{model['repository']}.json" for model in models.values()])


def measurements_for_claims(table: RunTable) -> list[str]:
    """All files besides the metrics that claims about figures and GPT-2 read."""
    figures = [(paper, figure) for paper, settings in table.papers.items() for figure in settings["figures"]]
    jobs = (SimpleNamespace(paper=paper, item=figure) for paper, figure in figures)
    arrays = dict.fromkeys(path for job in jobs for path in measurements(table, job))
    return [*arrays, *gpt2_measured(table)]


# The definition of a paper.


@lru_cache(maxsize=32)
def definition(table: RunTable, paper: str) -> dict:
    """The content of a paper's config that the report shows, in the order of the config.

    `comparable` tells whether numbers may be compared with printed ones: only if the scale changes nothing but the
    number of seeds.
    """
    settings = table.papers[paper]
    return {
        "paper": paper,
        "title": settings["title"],
        "scale": table.scale,
        "scale_title": table.scale_settings["title"],
        "scale_shows": table.scale_settings.get("shows", ""),
        "printed": settings.get("printed", True),
        "equivalence": table.config["equivalence"],
        "comparable": not changes_settings(table.scale_settings["papers"].get(paper, {})),
        "methods": {
            name: {
                "label": method["label"],
                "experiment": (first := _first_experiment(table, paper, name)),
                "seeds": table.seeds_of(paper, name, first),
                "planned": table.planned_seeds(paper, name),
                "trained": {one: table.seeds_of(paper, name, one) for one in table.experiments_of(paper, name)},
                "groups": method.get("groups"),
            }
            for name, method in table.published[paper]["methods"].items()
        },
        "tables": settings["tables"],
        "figures": settings["figures"],
        "gpt2": settings.get("gpt2", {}),
        "settings": settings["experiments"],
        "outdated": [
            run.name for run in table.runs.values() if run.paper == paper and table.folder(run) in outdated(table)
        ],
        **{key: settings.get(key, {}) for key in ("headline", "source", "summary", "abbreviations")},
        **_texts(table, paper),
    }


def _texts(table: RunTable, paper: str) -> dict:
    """The texts of a paper's experiments: display names, that of the unigrams' text, and whether any is synthetic."""
    trained = {experiment["corpus"]["name"] for experiment in table.papers[paper]["experiments"].values()}
    # Experiments can have the name of the published corpus.
    names = trained | (table.corpora.keys() & table.papers[paper]["experiments"].keys())
    forward = {name: table.corpora[table.corpora[name].get("reverse_of", name)] for name in sorted(names)}
    domains = {domain for corpus in forward.values() for domain in corpus.get("domains", {})}
    title = partial(corpus_title, table.corpora, table.datasets)
    texts = {name: corpus.get("external_counts", {}) for name, corpus in forward.items()}
    return {
        "titles": {name: title(name) for name in sorted(names | domains)},
        "unigrams": {name: {start: title(text) for start, text in of.items()} for name, of in texts.items()},
        "synthetic": any("synthetic" in forward[name] for name in trained),
    }


@per_job
def definition_digest(table: RunTable, wildcards) -> str:
    """Digest of a paper's definition with its order, in which tables show methods."""
    return hashlib.sha256(json.dumps(definition(table, wildcards.paper)).encode()).hexdigest()


@per_job
def definition_config(table: RunTable, wildcards, output) -> list[str]:
    """The values of config.yaml that determine the definition of a paper, as for --config.

    Snakemake compares no params that depend on `output`: other words for the same definition rerun nothing.
    """
    return [
        f"{key}={json.dumps(table.config[key])}" for key in ("scale", "seeds", "equivalence", "recorded", "finished")
    ]


@per_job
def printed(table: RunTable, wildcards) -> list[str]:
    """The printed numbers of a table's paper, and the printed values of its kind of table, if any."""
    kind = entry(table, wildcards).get("kind")
    names = ["numbers", kind] if kind in PRINTED else ["numbers"]
    return [str(table.project / "config" / "papers" / wildcards.paper / f"{name}.csv") for name in names]


@per_job
def papers_folder(table: RunTable, wildcards, input) -> str:
    """Folder of the printed numbers and claims among a job's inputs."""
    return str(table.project / "config" / "papers")


@per_job
def title(table: RunTable, wildcards) -> str:
    """The title of a paper, under which `snakemake --report` lists its tables and figures."""
    return table.papers[wildcards.paper]["title"]


@per_job
def labels(table: RunTable, wildcards) -> dict[str, str]:
    """Labels of a table or figure for `snakemake --report`: title, methods, seeds and groups."""
    paper, item = wildcards.paper, entry(table, wildcards)
    methods, compared = item.get("methods", []), item.get("experiments", [])
    if compared == "all":
        compared = table.papers[paper]["experiments"]
    seeds = {run.seed for run in table.runs.values() if run.paper == paper and run.method in methods}
    return {
        "item": wildcards.item,
        "title": item["title"],
        "methods": ", ".join(table.published[paper]["methods"][method]["label"] for method in methods),
        "seeds": ", ".join(map(str, sorted(seeds))),
        "groups": ", ".join(map(str, item.get("groups") or compared)),
    }


def command(table: RunTable) -> str:
    """The command line before the name of a results file; without `--`, the name would be taken for a config value."""
    chosen = {"scale": table.scale, "seeds": table.config["seeds"]}
    chosen |= {key: True for key in ("recorded", "finished") if table.config[key]}
    words = (f"{key}={json.dumps(value)}" for key, value in chosen.items() if value is not None)
    config = (word.replace('"', "").replace(", ", ",") for word in words)
    return f"snakemake --cores all --config {shlex.join(config)} --"


def changes_settings(changes: dict) -> bool:
    """Whether a scale changes more of a paper than numbers of seeds."""
    sizes = (changes.get(section) for section in ("experiments", "gpt2"))
    return any(sizes) or any(
        method is None or method.keys() - {"seeds"} for method in changes.get("methods", {}).values()
    )
