"""What the rules ask the run table: paths, inputs, parameters and resources of a job.

Rules stay free of helper functions this way, and these can be tested without Snakemake.
"""

import json
import os
import re
import shlex
import sys
from functools import cache, cached_property
from pathlib import Path

from raretok import runs
from raretok.data import catalogue
from raretok.errors import UserError
from raretok.files import read_json
from raretok.grids import has_candidates
from raretok.hardware import Hardware
from raretok.methods import part_names
from raretok.runs import STATE_FOLDER, Run
from raretok.sources import PACKAGE, all_sources, digest_of, sources_of, training_sources
from raretok.stacks import Stack, plan


class Workflow(Hardware):
    """The run table as rules see it. Methods named `..._of` take a job's wildcards."""

    # Sources: the files that can change what a job makes (`raretok.sources`), looked up when a rule asks.

    @property
    def evaluation_sources(self) -> list[str]:
        """Files that can change a metric or an array."""
        return sources_of("raretok.evaluation.command")

    @property
    def alignment_sources(self) -> list[str]:
        """Files that can change a word alignment."""
        return sources_of("raretok.alignment.alignment")

    @property
    def gpt2_sources(self) -> list[str]:
        """Files that can change a measurement of GPT-2."""
        return sources_of("raretok.evaluation.margins")

    @property
    def compare_sources(self) -> list[str]:
        """Files that can change how systems are held against each other."""
        return sources_of("raretok.evaluation.compare_command")

    @property
    def collect_sources(self) -> list[str]:
        """Files that can change the collected metrics."""
        return sources_of("raretok.reporting.collect")

    @property
    def cost_sources(self) -> list[str]:
        """Files that can change what is said of the cost of runs."""
        return sources_of("raretok.reporting.cost")

    @property
    def table_sources(self) -> list[str]:
        """Files that can change a table."""
        return sources_of("raretok.reporting.tables")

    @property
    def claims_sources(self) -> list[str]:
        """Files that can change a verdict."""
        return sources_of("raretok.reporting.claims")

    @property
    def agreement_sources(self) -> list[str]:
        """Files that can change how far our numbers agree with the printed ones."""
        return sources_of("raretok.reporting.agreement")

    @property
    def improvement_sources(self) -> list[str]:
        """Files that can change what is said of methods against the first of their table."""
        return sources_of("raretok.reporting.improvement")

    @property
    def page_sources(self) -> list[str]:
        """Files that can change the page, but for its templates."""
        return sources_of("raretok.reporting.page")

    @property
    def pdf_sources(self) -> list[str]:
        """Files that can change the report on paper, but for its template."""
        return sources_of("raretok.reporting.pdf")

    @property
    def page_templates(self) -> list[str]:
        """What the page is put together from."""
        folder = PACKAGE / "reporting" / "templates" / "page"
        return sorted(path.relative_to(PACKAGE.parents[1]).as_posix() for path in folder.iterdir())

    @property
    def readme_sources(self) -> list[str]:
        """Files that can change what the README shows of the results."""
        return sources_of("raretok.reporting.readme")

    def figure_sources_of(self, wildcards) -> list[str]:
        """Files that can change a figure: its paper's module is loaded by name."""
        return all_sources("raretok.reporting.figure", f"raretok.reporting.figures.{wildcards.paper}")

    def training_sources_of(self, wildcards) -> list[str]:
        """Files that can change what a job trains: its method's parts are loaded by name."""
        return training_sources(part_names(self.run_of(wildcards).settings["method"]))

    def check(self) -> None:
        """Resolve every run now: a mistake in a method is one sentence here, and a stack trace inside a rule."""
        _ = self.runs

    @cached_property
    def outdated(self) -> list[str]:
        """Folders of finished runs whose settings the config has changed since: they count as missing.

        Recorded ones are what they are (a test holds them against the config).
        """
        if self.recorded or not self.render_only:
            return []
        return [folder for run in self.runs.values() if self._is_outdated(run, folder := self.folder(run))]

    def _is_outdated(self, run: Run, folder: str) -> bool:
        path = self.root / folder / "metrics.json"
        return path.exists() and read_json(path)["training"]["hash"] != run.hash

    def warning(self) -> str:
        """What to say before a report of what is finished is rendered; empty where nothing is left out."""
        if not self.outdated:
            return ""
        more = f", and {len(self.outdated) - 1} more" if len(self.outdated) > 1 else ""
        return (
            f"left out, made with other settings than the config has now: {self.outdated[0]}{more}; "
            "without finished=true they are made again"
        )

    @property
    def wildcards(self) -> dict[str, str]:
        """What wildcards can be: a target with another name is one that no rule makes."""
        items = [item for paper in self.papers.values() for item in (*paper["tables"], *paper["figures"])]
        names = {
            "experiment": [name for paper in self.papers.values() for name in paper["experiments"]],
            "method": [name for paper in self.papers.values() for name in paper["methods"]],
            "seed": map(str, self.seeds),
            "paper": self.papers,
            "item": items,
        }
        return {wildcard: "|".join(map(re.escape, dict.fromkeys(known))) for wildcard, known in names.items()}

    # Data: wildcards dataset and file, or corpus.

    def file_entry_of(self, wildcards) -> str:
        """What determines a downloaded file, as canonical JSON."""
        return catalogue.file_params(self.datasets, wildcards.dataset, wildcards.file)

    def corpus_entry_of(self, wildcards) -> str:
        """What determines a corpus, as canonical JSON."""
        return catalogue.corpus_params(self.corpora, wildcards.corpus)

    def corpora_of_kind(self, kind: str, reverse: bool = False) -> str:
        """Names of the corpora of one kind, as a wildcard's constraint; reverse: those that reverse another one."""
        return "|".join(map(re.escape, catalogue.corpora_of_kind(self.corpora, kind, reverse)))

    def text_of(self, wildcards) -> str:
        """The text of a corpus of characters."""
        return catalogue.text_file(self.corpora, wildcards.corpus)

    def splits_of(self, wildcards) -> dict[str, str]:
        """The texts of a language corpus: train, valid and test."""
        return catalogue.split_files(self.corpora, wildcards.corpus)

    def merges_of(self, wildcards) -> list[str]:
        """The published BPE merges of a language corpus, or nothing where it has its own tokeniser."""
        return catalogue.merges_file(self.corpora, wildcards.corpus)

    def pair_texts_of(self, wildcards) -> list[str]:
        """The texts of a translation corpus and of its other domains, and its published tokenizer, if any."""
        parts = catalogue.pair_files(self.corpora, wildcards.corpus).values()
        texts = [str(path) for files in parts for pair in files for path in (pair.source, pair.target)]
        return list(dict.fromkeys([*texts, *catalogue.tokenizer_file(self.corpora, wildcards.corpus)]))

    def forward_of(self, wildcards) -> str:
        """Manifest of the corpus that a translation corpus reverses."""
        return f"{self.results}/data/{self.corpora[wildcards.corpus]['reverse_of']}/manifest.json"

    def shard_of(self, wildcards) -> str:
        """One shard of a text whose unigrams are counted."""
        return self.shards(wildcards.text)[wildcards.shard]

    def shard_counts_of(self, wildcards) -> list[str]:
        """The unigrams of every shard of a text, counted with a translation corpus's tokenizer."""
        folder = f"{self.results}/counts/{wildcards.corpus}/{wildcards.text}"
        return [f"{folder}/{shard}.npy" for shard in self.shards(wildcards.text)]

    def shards(self, text: str) -> dict[str, str]:
        """The shards of a text, by the last part of their names."""
        return {Path(path).name: path for path in catalogue.shards(self.corpora, text)}

    def counts_file(self, corpus: str, name: str) -> str:
        """Counts of a translation corpus's target types in another text, by the name its entry gives it."""
        text = catalogue.external_text(self.corpora, corpus, name)
        return f"{self.results}/counts/{corpus}/{text}.npy"

    # Runs: wildcards experiment, method and seed.

    def run_json_of(self, wildcards) -> str:
        """The run of a job, as one string that changes only when the run does."""
        return self.run_of(wildcards).json()

    def state_of(self, wildcards) -> str:
        """Where a job keeps the state of its unfinished training."""
        run = self.run_of(wildcards)
        return f"{self.results}/{STATE_FOLDER.format(**vars(run))}"

    def manifest_of(self, wildcards) -> str:
        """Manifest of the corpus that a job trains or evaluates on."""
        return f"{self.results}/data/{self.run_of(wildcards).settings['corpus']['name']}/manifest.json"

    # Runs trained together: a stack's job keeps the files of each of its runs, and leaves a mark for its `train`.

    @cached_property
    def stacks(self) -> dict[str, Stack]:
        """The runs that are trained together, by the name of their rule; none where config says `together: 1`."""
        together = self.config["together"]
        stacks = plan(self.runs.values(), together) if together > 1 else []
        return {f"train_together_{number}": stack for number, stack in enumerate(stacks, 1) if self.marks(stack)}

    def mark(self, run: Run) -> str:
        """What a stack's job makes for the `train` of a run. It stays, and so stays an input of that run's files.

        Another run or other code has another mark: what is there already makes no stack's job run again.
        """
        return f"{self.folder(run)}/together-{run.hash}-{training_digest(run)[:8]}"

    def marks(self, stack: Stack) -> list[str]:
        """The marks of a stack's runs, but of those that were trained alone: they are not asked to wait for one."""
        waiting = (run for run in stack.runs if not self.is_trained(run))
        return [mark for mark in map(self.mark, waiting) if not (self.root / mark).exists()]

    @cached_property
    def stack_of_mark(self) -> dict[str, Stack]:
        """The stack whose job makes a mark."""
        return {mark: stack for stack in self.stacks.values() for mark in self.marks(stack)}

    def is_trained(self, run: Run) -> bool:
        """Whether the files of a run are there, made by this code on whatever machine."""
        path = self.root / self.folder(run) / "training.json"
        record = read_json(path) if path.exists() else {}
        return (record.get("hash"), record.get("sources")) == (run.hash, training_digest(run))

    def mark_of(self, wildcards) -> list[str]:
        """The mark of a job's run, where it is, or is to be, trained together with others."""
        mark = self.mark(self.run_of(wildcards))
        return [mark] if mark in self.stack_of_mark or (self.root / mark).exists() else []

    def runs_of(self, wildcards, output) -> str:
        """The runs of a stack's job; a function of its marks, so that another choice of runs is no other parameter."""
        return self.stack_of_mark[output[0]].json()

    def results_of(self, wildcards, output) -> str:
        """The folder of results in which a stack's marks are."""
        return self.results

    def evaluation_of(self, wildcards) -> str:
        """How a job's run is evaluated, as canonical JSON."""
        return self.evaluation(wildcards.experiment)

    def similarity_of(self, wildcards) -> list[str]:
        """Sets of word pairs that a job's run is measured on, as NAME=PATH."""
        settings = json.loads(self.evaluation(wildcards.experiment))
        return [f"{name}=resources/{file}" for name, file in settings.get("word_similarity", {}).items()]

    def similarity_files_of(self, wildcards) -> list[str]:
        """The files of those sets, each once."""
        return list(dict.fromkeys(pair.partition("=")[2] for pair in self.similarity_of(wildcards)))

    def links_of(self, wildcards) -> list[str]:
        """The word links of the corpus that a job's run translates, where its evaluation needs them."""
        if not json.loads(self.evaluation(wildcards.experiment)).get("alignment"):
            return []
        return [f"{self.results}/alignments/{self.run_of(wildcards).settings['corpus']['name']}/train.links"]

    def outside_counts_of(self, wildcards) -> list[str]:
        """Counts of another text, where the output bias of a job's run starts from those."""
        settings = self.run_of(wildcards).settings
        start = settings["model"].get("output_bias")
        if start in (None, "zero", "unigram"):
            return []
        return [self.counts_file(settings["corpus"]["name"], start)]

    # Translations held against each other: wildcards experiment and seed.

    def systems(self, experiment: str, seed: int | str) -> dict[str, str]:
        """The translations of every method of an experiment, by method; the first is what others are held against."""
        found = [run for run in self.runs.values() if (run.experiment, run.seed) == (experiment, int(seed))]
        return {run.method: f"{self.folder(run)}/hypotheses.json" for run in found}

    def hypotheses_of(self, wildcards) -> list[str]:
        """Their files."""
        return list(self.systems(wildcards.experiment, wildcards.seed).values())

    def systems_of(self, wildcards) -> list[str]:
        """Method and file of each, as METHOD=PATH."""
        return [f"{name}={path}" for name, path in self.systems(wildcards.experiment, wildcards.seed).items()]

    def references_of(self, wildcards) -> str:
        """What should have been translated: the target side of the test split."""
        first = next(iter(self.systems(wildcards.experiment, wildcards.seed)))
        name = self.run(wildcards.experiment, first, wildcards.seed).settings["corpus"]["name"]
        return f"{self.results}/data/{name}/test.target.txt"

    @property
    def comparisons(self) -> list[str]:
        """Of every experiment that translates with more than one method, seed by seed.

        Of candidates there are none: most stand for no method, and the page shows no test of them.
        """
        translated = [
            name
            for paper in self.papers.values()
            if not has_candidates(paper)
            for name, experiment in paper["experiments"].items()
            if self.corpora[experiment["corpus"]["name"]]["kind"] == "translation"
        ]
        return self.available(
            [
                f"{self.results}/comparisons/{experiment}/seed{seed}.json"
                for experiment in translated
                for seed in self.seeds
                if len(self.systems(experiment, seed)) > 1
            ]
        )

    # GPT-2: wildcard repository.

    def gpt2_of(self, wildcards) -> dict:
        """Name, width, vocabulary and percentile of one GPT-2; UserError for one that no paper measures."""
        for paper in self.papers.values():
            settings = paper.get("gpt2", {"models": {}})
            for name, model in settings["models"].items():
                if model["repository"] == wildcards.repository:
                    return {"name": name, "width": model["width"]} | {
                        key: settings[key] for key in ("vocabulary", "percentile_index")
                    }
        raise UserError(f"no file in config/papers has {wildcards.repository!r} under gpt2.models")

    def gpt2_checkpoint_of(self, wildcards) -> list[str]:
        """Pre-trained weights of one GPT-2, or nothing where the config skips them."""
        place = self.config["gpt2_weights"]
        if place == "skip":
            return []
        return [f"{'resources' if place == 'hub' else place}/{wildcards.repository}/model.safetensors"]

    def gpt2_files(self, paper: str) -> list[str]:
        """What is measured of every GPT-2 that a paper reports on."""
        models = self.papers[paper].get("gpt2", {"models": {}})["models"]
        return self.available([f"{self.results}/gpt2/{model['repository']}.json" for model in models.values()])

    # Reports: wildcards paper and item.

    @property
    def metrics_files(self) -> list[str]:
        """metrics.json of every run."""
        return self.available([f"{self.folder(run)}/metrics.json" for run in self.runs.values()])

    def available(self, paths: list[str]) -> list[str]:
        """All of `paths`, since rules make them; where only what is there is shown, those that are there."""
        if not self.render_only:
            return paths
        outdated = set(self.outdated)
        return [path for path in paths if (self.root / path).exists() and str(Path(path).parent) not in outdated]

    def measured_for(self, paper: str, item: str) -> list[str]:
        """metrics.json and arrays.npz of the runs that a table or figure shows, or measurements of GPT-2."""
        entry = self.item(paper, item)
        if entry.get("kind") == "gpt2":
            return self.gpt2_files(paper)
        shown = entry.get("methods", [])
        runs_shown = [
            run
            for run in self.runs.values()
            if run.paper == paper
            and run.method in shown
            and run.experiment in self.experiments_shown(paper, run.method, item)
        ]
        names = ("metrics.json", "arrays.npz")
        return self.available([f"{self.folder(run)}/{name}" for run in runs_shown for name in names])

    def measured_of(self, wildcards) -> list[str]:
        """What a table or figure shows."""
        return self.measured_for(wildcards.paper, wildcards.item)

    def published_of(self, wildcards) -> list[str]:
        """What is printed beside a table's numbers, where its kind has a file of its own."""
        kind = self.item(wildcards.paper, wildcards.item).get("kind")
        return [f"config/published/{kind}.csv"] if kind in ("neighbours", "hyperparameters") else []

    def definition_of(self, wildcards) -> str:
        """What the config says about a table or figure, as JSON."""
        return self.definition(wildcards.paper, wildcards.item)

    def definitions_of(self, wildcards) -> list[str]:
        """What the config says about every paper, as JSON; a function, since its {braces} are no wildcards."""
        return [self.definition(paper) for paper in self.papers]

    @property
    def measured_for_claims(self) -> list[str]:
        """Everything that claims about figures and GPT-2 read beside the metrics."""
        items = [(paper, figure) for paper, settings in self.papers.items() for figure in settings["figures"]]
        arrays = {path: None for item in items for path in self.measured_for(*item)}
        return [*arrays, *self.gpt2_measured]

    @property
    def gpt2_measured(self) -> list[str]:
        """What is measured of every GPT-2 of the papers."""
        return [path for paper in self.papers for path in self.gpt2_files(paper)]

    def items(self, paper: str) -> list[str]:
        """Every table and figure of a paper, in every form."""
        settings = self.papers[paper]
        forms = {"tables": ("csv", "md", "tex"), "figures": ("svg", "png", "pdf")}
        return [
            f"{self.results}/{kind}/{paper}/{item}.{form}"
            for kind in forms
            for item in settings[kind]
            for form in forms[kind]
        ]

    @property
    def command(self) -> str:
        """What a user types before the name of a file of these results; without `--` it would be taken for config."""
        chosen = {"scale": self.scale, "seeds": self.config["seeds"]}
        chosen |= {key: True for key in ("recorded", "finished") if self.config[key]}
        words = (f"{key}={json.dumps(value)}" for key, value in chosen.items() if value is not None)
        config = (word.replace('"', "").replace(", ", ",") for word in words)
        return f"snakemake --cores all --config {shlex.join(config)} --"

    @property
    def makes_readme(self) -> bool:
        """Whether the README is brought up to date: from recorded results, of all papers and seeds."""
        papers = {path.stem for path in (self.root / "config" / "papers").glob("*.yaml")}
        return self.recorded and papers <= set(self.papers) and not self.config["seeds"]

    @property
    def headlines(self) -> list[str]:
        """The figures in the README."""
        named = {paper: settings.get("headline", {}).get("figure") for paper, settings in self.papers.items()}
        return [f"{self.results}/figures/{paper}/{figure}.png" for paper, figure in named.items() if figure]

    def item(self, paper: str, item: str) -> dict:
        """The config entry of a table or figure; UserError when there is none."""
        entries = self.papers[paper]["tables"] | self.papers[paper]["figures"]
        if item not in entries:
            raise UserError(f"config/papers/{paper}.yaml has no table or figure {item!r}; it has {', '.join(entries)}")
        return entries[item]

    def title_of(self, wildcards) -> str:
        """The title of a table's or figure's paper: what `snakemake --report` gathers it under."""
        return self.papers[wildcards.paper]["title"]

    def labels_of(self, wildcards) -> dict[str, str]:
        """What `snakemake --report` lists a table or figure by."""
        return {"item": wildcards.item, "title": self.item(wildcards.paper, wildcards.item)["title"]}

    def experiment_shown(self, paper: str, method: str, item: str | None = None) -> str:
        """The experiment in which a table or figure shows a method: the one that it names, or the method's first.

        Where the scale leaves that out, there are no runs of it, and the item shows the method as not run.
        """
        settings = self.published[paper]
        trained = settings["methods"][method].get("experiments", list(settings["experiments"]))
        here = self.experiments_of(paper, method) or trained
        named = here[0] if item is None else self.item(paper, item).get("experiment", here[0])
        if named not in trained:
            raise UserError(
                f"config/papers/{paper}.yaml: {item} shows {method} in experiment {named!r}, in which it is not trained"
            )
        return named

    def experiments_shown(self, paper: str, method: str, item: str) -> list[str]:
        """All experiments in which a table or figure shows a method: several where it compares them."""
        entry = self.item(paper, item)
        compared = entry.get("experiments")
        if compared == "all":
            return self.experiments_of(paper, method)
        if compared:
            trained = self.published[paper]["methods"][method].get("experiments", self.published[paper]["experiments"])
            return [experiment for experiment in compared.values() if experiment in trained]
        return [self.experiment_shown(paper, method, item)]

    def definition(self, paper: str, item: str | None = None) -> str:
        """JSON of what the report shows of a paper, or of one table or figure alone, in the order of the config.

        `comparable` says whether numbers may be held against the printed ones: only where the scale changes
        nothing but the number of seeds.
        """
        settings = self.papers[paper]
        shown = None if item is None else self.item(paper, item).get("methods", [])
        return json.dumps(
            {
                "paper": paper,
                "title": settings["title"],
                "scale": self.scale,
                "scale_title": self.scale_settings["title"],
                "printed": settings.get("printed", True),
                "comparable": not changes_settings(self.scale_settings["papers"].get(paper, {})),
                "methods": {
                    name: {
                        "label": method["label"],
                        "experiment": self.experiment_shown(paper, name, item),
                        "trained": self.experiments_of(paper, name),
                        "seeds": self.seeds_of(paper, name),
                        "groups": method.get("groups"),
                    }
                    for name, method in self.published[paper]["methods"].items()
                    if shown is None or name in shown
                },
                "tables": {key: entry for key, entry in settings["tables"].items() if item in (None, key)},
                "figures": {key: entry for key, entry in settings["figures"].items() if item in (None, key)},
                "gpt2": settings.get("gpt2", {}),
                "settings": settings["experiments"],
                # A table or figure does not change with what the README shows.
                "headline": settings.get("headline", {}) if item is None else {},
            },
            ensure_ascii=False,
        )


def changes_settings(changes: dict) -> bool:
    """Whether what a scale lays over a paper changes more than numbers of seeds."""
    sizes = (changes.get(section) for section in ("experiments", "gpt2"))
    return any(sizes) or any(
        method is None or method.keys() - {"seeds"} for method in changes.get("methods", {}).values()
    )


def training_digest(run: Run) -> str:
    """What names the code that decides the training of a run, as its results say it."""
    return _digest_of_parts(tuple(part_names(run.settings["method"])))


@cache
def _digest_of_parts(parts: tuple[str, ...]) -> str:
    return digest_of(training_sources(parts))


def load(config: dict, root: Path | str = ".") -> Workflow:
    """The run table for the rules; see `raretok.runs.load` for what it raises."""
    return runs.load(config, root, Workflow)


def use_this_checkout() -> None:
    """Make `python -m raretok` in jobs mean this package and the Python at work here, environment activated or not."""
    package = str(Path(__file__).parents[1])
    for variable, folder in (("PYTHONPATH", package), ("PATH", str(Path(sys.executable).parent))):
        os.environ[variable] = os.pathsep.join(filter(None, [folder, os.environ.get(variable)]))
