"""What the rules that report ask the run table: what tables, figures, claims and the page are made from.

Methods named `..._of` take a job's wildcards, paper and item.
"""

import json
import shlex
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from raretok.core.code_digest import PACKAGE, claims_module, code_of, figures_module, file_of
from raretok.core.errors import UserError
from raretok.core.files import read_json
from raretok.experiments.run_table import Run, paper_ids
from raretok.machine.commands import COMMANDS
from raretok.rule_inputs.resources import Hardware


class Reports(Hardware):
    """The run table as the rules of reports see it."""

    # Code: a digest of what a job's command runs (`raretok.core.code_digest`), as a parameter: other code makes its
    # files again.

    def code(self, command: str) -> Callable:
        """The code of one command (`raretok.__main__`), looked up when a job asks."""
        return lambda wildcards: command_code(command)

    def figure_code_of(self, wildcards) -> str:
        """The code that draws a paper's figures."""
        return code_of(COMMANDS["figure"][0], figures_module(wildcards.paper))

    @property
    def claims_code(self) -> str:
        """The code that judges claims, with the functions of every paper."""
        modules = filter(file_of, map(claims_module, self.papers))
        return code_of(COMMANDS["claims"][0], *modules)

    @property
    def page_templates(self) -> list[str]:
        """What the page is put together from."""
        folder = PACKAGE / "reporting" / "templates" / "page"
        return sorted(path.relative_to(PACKAGE.parents[1]).as_posix() for path in folder.iterdir())

    @property
    def pages(self) -> list[str]:
        """The report: a first page, one for each paper, and what concerns them all."""
        names = ["index", *self.papers, "method", "cost", "provenance"]
        return [f"{self.results}/report/{name}.html" for name in names]

    # What they read.

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
        return [f"config/papers/{wildcards.paper}/{kind}.csv"] if kind in ("neighbours", "hyperparameters") else []

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
        return self.recorded and set(paper_ids(self.root)) <= set(self.papers) and not self.config["seeds"]

    def item(self, paper: str, item: str) -> dict:
        """The config entry of a table or figure; UserError when there is none."""
        entries = self.papers[paper]["tables"] | self.papers[paper]["figures"]
        if item not in entries:
            raise UserError(
                f"config/papers/{paper}/paper.yaml has no table or figure {item!r}; it has {', '.join(entries)}"
            )
        return entries[item]

    def title_of(self, wildcards) -> str:
        """The title of a table's or figure's paper: what `snakemake --report` gathers it under."""
        return self.papers[wildcards.paper]["title"]

    def labels_of(self, wildcards) -> dict[str, str]:
        """What `snakemake --report` lists a table or figure by: its title, and its methods, seeds and groups."""
        paper, item = wildcards.paper, wildcards.item
        entry = self.item(paper, item)
        methods = entry.get("methods", [])
        seeds = sorted({seed for method in methods for seed in self.seeds_of(paper, method)})
        return {
            "item": item,
            "title": entry["title"],
            "methods": ", ".join(self.published[paper]["methods"][method]["label"] for method in methods),
            "seeds": ", ".join(map(str, seeds)),
            "groups": ", ".join(map(str, entry.get("groups") or entry.get("experiments") or [])),
        }

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
                f"config/papers/{paper}/paper.yaml: {item} shows {method} in experiment {named!r}, in which it is not "
                "trained"
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
                **(
                    {"source": settings.get("source", {}), "summary": settings.get("summary", {})}
                    if item is None
                    else {}
                ),
            },
            ensure_ascii=False,
        )

    def gpt2_files(self, paper: str) -> list[str]:
        """What is measured of every GPT-2 that a paper reports on."""
        models = self.papers[paper].get("gpt2", {"models": {}})["models"]
        return self.available([f"{self.results}/gpt2/{model['repository']}.json" for model in models.values()])


def command_code(command: str) -> str:
    """Digest of the code of one command."""
    return code_of(COMMANDS[command][0])


def changes_settings(changes: dict) -> bool:
    """Whether what a scale lays over a paper changes more than numbers of seeds."""
    sizes = (changes.get(section) for section in ("experiments", "gpt2"))
    return any(sizes) or any(
        method is None or method.keys() - {"seeds"} for method in changes.get("methods", {}).values()
    )
