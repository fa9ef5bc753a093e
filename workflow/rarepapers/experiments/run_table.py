"""The run table: every model to train, with all settings that determine it and their hash.

This module and its imports do not import torch, since Snakemake loads them on every dry run.
"""

import argparse
import dataclasses
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from rarepapers.core.config_files import canonical_json, merge, read_config
from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json
from rarepapers.core.type_check import validate
from rarepapers.data.catalogue import corpus_definition, find_corpus, load_corpora, load_datasets
from rarepapers.experiments import config_options
from rarepapers.experiments.config_checks import (
    check_choices,
    check_experiments,
    check_finished,
    check_metrics,
    check_name,
    check_named,
    check_overrides,
    check_references,
)
from rarepapers.experiments.config_types import Choices, Paper, Scale
from rarepapers.experiments.grids import expand, with_rate
from rarepapers.experiments.methods import build_method
from rarepapers.experiments.scaling import resolve_parts, scale_evaluation, scale_factors
from rarepapers.experiments.seeds import seed_list
from rarepapers.models import build_config

# Hexadecimal digits of a run hash.
HASH_DIGITS = 16
# Path of a run, with the wildcards of the rules, and folder of its final files below the results.
RUN_NAME = "{experiment}/{method}/seed{seed}"
RUN_FOLDER = f"runs/{RUN_NAME}"
# Folder of the state of a run's unfinished training.
STATE_FOLDER = f"state/{RUN_NAME}/{{hash}}"
# Overrides of the experiment in a method's entry; they are not part of the method itself.
OVERRIDES = ("model", "training", "corpus")


@dataclass(frozen=True)
class Run:
    """One model to train. `settings` hold everything that determines the result, `hash` is their digest."""

    paper: str
    experiment: str
    method: str
    seed: int
    settings: dict
    hash: str

    @property
    def name(self) -> str:
        """The run's name in paths."""
        return RUN_NAME.format(experiment=self.experiment, method=self.method, seed=self.seed)

    @property
    def kind(self) -> str:
        """The kind of its corpus."""
        return self.settings["corpus"]["definition"]["kind"]

    def json(self) -> str:
        """The run as `rarepapers train --run` takes it."""
        return canonical_json(dataclasses.asdict(self))


@dataclass(frozen=True, eq=False)
class RunTable:
    """All runs of one configuration; hashed by identity, so that functions of a table can be cached.

    config: checked values of config.yaml. scale_settings: those of the scale's file. papers: checked values of each
    paper's file, overlaid with the scale's; published: the same without the scale. root: folder of results/ and
    resources/. project: folder of config/, usually the same.
    """

    config: dict
    scale_settings: dict
    papers: dict[str, dict]
    published: dict[str, dict]
    corpora: dict
    datasets: dict
    root: Path
    project: Path

    @property
    def scale(self) -> str:
        """The name of the scale."""
        return self.config["scale"]

    @property
    def results(self) -> str:
        """Folder of the scale's results, relative to `root`."""
        return results_folder(self.config)

    @property
    def rendered(self) -> str:
        """Folder of the scale's tables, figures, verdicts and report, relative to `root`.

        Recorded runs are rendered beside those in git, which only a finished report replaces (`make record-page`).
        """
        return f"results/rendered/{self.scale}" if self.config["recorded"] else self.results

    @property
    def logs(self) -> str:
        """Folder of the logs of the scale's jobs."""
        return f"logs/{self.scale}"

    def run_logs(self) -> list[Path]:
        """The logs of trainings and evaluations, one per run and stage."""
        return list((self.root / self.logs).glob("*/*/*/seed*.txt"))

    @property
    def render_only(self) -> bool:
        """Whether only finished runs are shown, and no rule trains, measures or downloads."""
        return self.config["recorded"] or self.config["finished"]

    @cached_property
    def runs(self) -> dict[tuple[str, str, int], Run]:
        """All runs by (experiment, method, seed), in the order of the config."""
        return {
            (experiment, method, seed): self._run(paper, experiment, method, seed)
            for paper, settings in self.papers.items()
            for experiment in settings["experiments"]
            for method in settings["methods"]
            if experiment in self.experiments_of(paper, method)
            for seed in self.seeds_of(paper, method, experiment)
        }

    @cached_property
    def seeds(self) -> list[int]:
        """All seeds that occur in a run."""
        return sorted({seed for *_, seed in self.runs})

    def seeds_of(self, paper: str, method: str, experiment: str) -> list[int]:
        """The seeds of a method in an experiment: the user's choice, else the method's, its paper's or the scale's.

        If only finished runs are shown and the user names no seeds, also those of finished runs.
        """
        planned = self.planned_seeds(paper, method)
        added = self.render_only and not self.config["seeds"]
        return sorted({*planned, *(self._finished_seeds(experiment, method) if added else [])})

    def planned_seeds(self, paper: str, method: str) -> list[int]:
        """The planned seeds of a method: the user's choice, else the method's, its paper's or the scale's."""
        if self.config["seeds"]:
            return self.usual_seeds
        own = self.papers[paper]["methods"].get(method) or {}
        return seed_list(own.get("seeds") or self.papers[paper].get("seeds") or self.scale_settings["seeds"])

    @property
    def usual_seeds(self) -> list[int]:
        """The user's seeds, else the scale's; methods and papers may have their own."""
        return seed_list(self.config["seeds"] or self.scale_settings["seeds"])

    def _finished_seeds(self, experiment: str, method: str) -> list[int]:
        names = (
            path.parent.name.removeprefix("seed")
            for path in (self.root / self.results / "runs").glob(f"{experiment}/{method}/seed*/metrics.json")
        )
        return [int(name) for name in names if name.isdecimal()]

    def experiments_of(self, paper: str, method: str) -> list[str]:
        """The experiments in which a method is trained: those it names, or all of its paper; none if it is left out."""
        settings = self.papers[paper]
        if method not in settings["methods"]:
            return []
        named = settings["methods"][method].get("experiments", settings["experiments"])
        return [experiment for experiment in named if experiment in settings["experiments"]]

    def _run(self, paper: str, experiment: str, method: str, seed: int) -> Run:
        settings = self.papers[paper]
        base, entry = settings["experiments"][experiment], settings["methods"][method]
        sections = {name: merge(base[name], entry.get(name, {})) for name in OVERRIDES}
        where = f"config/papers/{paper}/paper.yaml: methods.{method}"
        try:
            build_config(sections["model"])
        except UserError as error:
            raise UserError(f"{where} in {experiment}: {error}") from None
        sections["corpus"]["definition"] = corpus_definition(
            self.corpora, self.datasets, sections["corpus"]["name"], sections["model"].get("output_bias")
        )
        sections["training"] = with_rate(sections["training"], entry.get("rate", 1))
        published = self.published[paper]["experiments"][experiment]
        parts = resolve_parts(entry, scale_factors(base, published), where)
        build_method(parts, where)
        everything = sections | {"method": parts, "seed": seed}
        digest = hashlib.sha256(canonical_json(everything).encode()).hexdigest()[:HASH_DIGITS]
        return Run(paper, experiment, method, seed, everything, digest)

    def run(self, experiment: str, method: str, seed: int | str) -> Run:
        """A run of the table; raises UserError if it does not exist."""
        return self.named(RUN_NAME.format(experiment=experiment, method=method, seed=seed))

    def named(self, name: str) -> Run:
        """The run EXPERIMENT/METHOD/seedN; raises UserError if it does not exist, such as seed01 beside seed1."""
        if name not in self._by_name:
            raise UserError(f"there is no run {name} at scale {self.scale} with seeds {self.seeds}")
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Run]:
        return {run.name: run for run in self.runs.values()}

    def folder(self, run: Run) -> str:
        """Folder of a run's final files."""
        return f"{self.results}/runs/{run.name}"

    def is_measured_in(self, run: Run, folder: Path) -> bool:
        """Whether a folder has metrics of this run, trained and evaluated with these settings.

        The first records do not have the settings of their evaluation and count as equal. COMET may be left out.
        """
        path = folder / "metrics.json"
        if not path.exists():
            return False
        measured = read_json(path)
        made = measured.get("evaluation", {}).get("settings")
        wanted = json.loads(self.evaluation(run.experiment))
        same = made is None or made | {"comet": None} == wanted | {"comet": None}
        return measured["training"]["hash"] == run.hash and same

    def evaluation(self, experiment: str) -> str:
        """Canonical JSON of the evaluation settings of an experiment."""
        for name, paper in self.papers.items():
            if experiment in paper["experiments"]:
                settings = paper["experiments"][experiment]
                factor = scale_factors(settings, self.published[name]["experiments"][experiment])["steps"]
                evaluation = scale_evaluation(settings["evaluation"], factor)
                kind = find_corpus(self.corpora, settings["corpus"]["name"])["kind"]
                if self.config["comet"] and kind == "translation":
                    evaluation["comet"] = self.config["comet"]
                return canonical_json(evaluation)
        raise UserError(f"there is no experiment {experiment!r} in {', '.join(self.papers)}")


def load(config: dict, root: Path | str = ".", project: Path | None = None) -> RunTable:
    """The run table of `config` (values of config.yaml) and the files in `project`/config (default: `root`/config).

    Raises UserError, naming file and key, for an unknown key, a wrong value or a name that does not exist.
    """
    root = Path(root)
    project = root if project is None else project
    config = {key: as_yaml(value) for key, value in config.items()}
    validate(config, Choices, "config/config.yaml or --config")
    scale_path = project / "config" / "scales" / f"{config['scale']}.yaml"
    check_name("scale", config["scale"], [path.stem for path in scale_path.parent.glob("*.yaml")])
    for paper in config["papers"]:
        check_name("papers", paper, paper_ids(project))
    check_choices(config)
    check_finished(config, root, results_folder(config))
    scale = read_config(scale_path, Scale)
    for paper in scale["papers"]:
        check_name("papers", paper, paper_ids(project), where=str(scale_path))
    published, papers = {}, {}
    for paper in config["papers"]:
        path = project / "config" / "papers" / paper / "paper.yaml"
        original = read_config(path, Paper)
        check_named(paper, scale, scale_path)
        changes = dict(scale["papers"].get(paper, {}))
        only = changes.pop("only", original["methods"])
        check_overrides(changes, only, original, f"{scale_path}: papers.{paper}")
        check_references(original, path)
        scaled = without_left_out(merge(original, changes), only)
        validate(scaled, Paper, f"{scale_path} (over {path})")
        published[paper] = expand(original, str(path), every=True)
        papers[paper] = expand(scaled, f"{scale_path} (over {path})")
    corpora = load_corpora(project / "config" / "corpora.yaml")
    check_experiments(papers, corpora)
    for paper, original in published.items():
        check_metrics(original, corpora, project / "config" / "papers" / paper / "paper.yaml")
    datasets = load_datasets(project / "config" / "datasets.yaml")
    return RunTable(config, scale, papers, published, corpora, datasets, root, project)


def load_to_train(arguments: argparse.Namespace, **choices) -> RunTable:
    """The run table of a command that trains runs, or plans to: `load` of its options, overlaid with `choices`."""
    config = config_options.config_of(arguments) | {"recorded": False, "finished": False} | choices
    return load(config, arguments.root, getattr(arguments, "project", None))


def results_folder(config: dict) -> str:
    """Folder of the results for these choices, relative to the project's folder."""
    return f"results/recorded/{config['scale']}" if config["recorded"] else f"results/{config['scale']}"


def as_yaml(value):
    """`value` with strings from the command line parsed as YAML (true, null, 3), also inside lists."""
    if isinstance(value, list):
        return [as_yaml(entry) for entry in value]
    if not isinstance(value, str):
        return value
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError:
        return value


def paper_ids(root: Path) -> list[str]:
    """The ids of all papers: folders of config/papers."""
    return [path.parent.name for path in (root / "config" / "papers").glob("*/paper.yaml")]


def without_left_out(paper: dict, only: Iterable[str]) -> dict:
    """A paper without the experiments and methods that its scale leaves out: null, or not in `only` (methods)."""
    kept = {
        section: {name: entry for name, entry in paper[section].items() if entry is not None}
        for section in ("experiments", "methods")
    }
    kept["methods"] = {name: entry for name, entry in kept["methods"].items() if name in only}
    return paper | kept


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    config_options.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print each run as the JSON for `train --run`")


def main(arguments: argparse.Namespace) -> None:
    """Print the run table."""
    table = load(config_options.config_of(arguments), arguments.root, arguments.project)
    for run in table.runs.values():
        print(run.json() if arguments.json else f"{run.hash}  {table.folder(run)}")
