"""What the rules ask the run table: paths, inputs, parameters and resources of a job.

Rules stay free of helper functions this way, and these can be tested without Snakemake.
"""

import json
import os
import re
import sys
from functools import cached_property
from pathlib import Path

from raretok.core.errors import UserError
from raretok.core.files import read_json
from raretok.data import catalogue
from raretok.experiments import run_table
from raretok.experiments.grids import has_candidates
from raretok.experiments.joint_runs import Stack, plan
from raretok.experiments.run_code import evaluation_code, observed, training_code, training_key
from raretok.experiments.run_table import STATE_FOLDER, Run
from raretok.rule_inputs.report_inputs import Reports


class Workflow(Reports):
    """The run table as rules see it. Methods named `..._of` take a job's wildcards."""

    # Code of a run's commands: digests, as in `reports`.

    def training_code_of(self, wildcards) -> str:
        """The code that trains a job's run."""
        return self.training_code(self.run_of(wildcards))

    def evaluation_code_of(self, wildcards) -> str:
        """The code that measures a job's run."""
        return self.evaluation_code(self.run_of(wildcards))

    def training_code(self, run: Run) -> str:
        """The code that trains a run, as its record says it."""
        return training_code(run.settings, self.kind(run))

    def evaluation_code(self, run: Run) -> str:
        """The code that measures a run, as its metrics say it."""
        return evaluation_code(run.settings, self.kind(run))

    def kind(self, run: Run) -> str:
        """The kind of corpus that a run is trained on."""
        return self.corpora[run.settings["corpus"]["name"]]["kind"]

    def check(self) -> None:
        """Resolve every run now: a mistake in a method is one sentence here, and a stack trace inside a rule."""
        _ = self.runs

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
        alone = (run for run in self.runs.values() if together > 1 and not self.same_training(run))
        stacks = plan(alone, together)
        return {f"train_together_{number}": stack for number, stack in enumerate(stacks, 1) if self.marks(stack)}

    def mark(self, run: Run) -> str:
        """What a stack's job makes for the `train` of a run. It stays, and so stays an input of that run's files.

        Another run or other code has another mark: what is there already makes no stack's job run again.
        """
        return f"{self.folder(run)}/together-{run.hash}-{self.training_code(run)[:8]}"

    def marks(self, stack: Stack) -> list[str]:
        """The marks of a stack's runs, but of those that were trained alone: they are not asked to wait for one."""
        waiting = (run for run in stack.runs if not self.is_trained(run))
        return [mark for mark in map(self.mark, waiting) if not (self.root / mark).exists()]

    @cached_property
    def stack_of_mark(self) -> dict[str, Stack]:
        """The stack whose job makes a mark."""
        return {mark: stack for stack in self.stacks.values() for mark in self.marks(stack)}

    def is_trained(self, run: Run, itself: bool = False) -> bool:
        """Whether the files of a run are there, made by this code on whatever machine; itself: and are no copy."""
        path = self.root / self.folder(run) / "training.json"
        record = read_json(path) if path.exists() else {}
        if itself and "same_as" in record:
            return False
        return (record.get("hash"), record.get("sources")) == (run.hash, self.training_code(run))

    # Trainings that two papers share, such as a baseline: one is trained, the other gets a copy of its files.

    @cached_property
    def _alike(self) -> dict[str, list[Run]]:
        """The runs that have the weights of a run, by its name; itself among them."""
        found: dict[str, list[Run]] = {}
        alike: dict[str, list[Run]] = {}
        for run in self.runs.values():
            alike[run.name] = found.setdefault(training_key(run.settings), [])
            alike[run.name].append(run)
        return alike

    def same_training(self, run: Run) -> Run | None:
        """Another run with the same weights, whose training files this run copies; None: the run is trained itself.

        The other one observes all that this run does. It is one that was trained before, or the first of the table.
        """
        alike = self._alike[run.name]
        if len(alike) == 1 or self.is_trained(run, itself=True):
            return None
        own = observed(run.settings)
        able = [other for other in alike if own < observed(other.settings)]
        able += [other for other in alike if own == observed(other.settings)]
        chosen = next((other for other in able if self.is_trained(other, itself=True)), able[0])
        return None if chosen is run else chosen

    def same_training_of(self, wildcards) -> list[str]:
        """The record of the training whose files a job's run copies, if any."""
        same = self.same_training(self.run_of(wildcards))
        return [f"{self.folder(same)}/training.json"] if same else []

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

        Of candidates there are none: most stand for no method, and the page shows no test of them. Nor are those shown
        that have a translation of other settings.
        """
        outdated = {f"{folder}/hypotheses.json" for folder in self.outdated}
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
                if len(found := self.systems(experiment, seed)) > 1 and outdated.isdisjoint(found.values())
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


def load(config: dict, root: Path | str = ".") -> Workflow:
    """The run table for the rules; see `raretok.experiments.run_table.load` for what it raises."""
    return run_table.load(config, root, Workflow)


def use_this_checkout() -> None:
    """Make `python -m raretok` in jobs mean this package and the Python at work here, environment activated or not."""
    package = str(Path(__file__).parents[2])
    for variable, folder in (("PYTHONPATH", package), ("PATH", str(Path(sys.executable).parent))):
        os.environ[variable] = os.pathsep.join(filter(None, [folder, os.environ.get(variable)]))
