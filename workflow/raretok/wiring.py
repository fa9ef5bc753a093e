"""What the rules ask the run table: inputs, parameters and resources of a job, and what the report shows.

Rules stay free of helper functions this way, and these can be tested without Snakemake.
"""

import json
from pathlib import Path

from raretok import runs
from raretok.errors import UserError
from raretok.runs import Run, RunTable

# Present where an NVIDIA driver is loaded; asking torch would cost every dry run its import.
GPU_DRIVER = Path("/dev/nvidiactl")
# Source files that can change the result of any training; a method's own files are added to these.
TRAINING_SOURCES = (
    "data/batches",
    "methods/__init__",
    "models/decoder",
    "models/layers",
    "models/output",
    "training/loop",
    "training/observe",
    "training/optimiser",
    "training/schedule",
    "training/tasks",
)


class Workflow(RunTable):
    """The run table as rules see it. Methods named `..._of` take the wildcards experiment, method and seed."""

    def run_of(self, wildcards) -> Run:
        """The run of a job."""
        return self.run(wildcards.experiment, wildcards.method, wildcards.seed)

    def run_json_of(self, wildcards) -> str:
        """The run of a job, as one string that changes only when the run does."""
        return self.run_of(wildcards).json()

    def state_of(self, wildcards) -> str:
        """Where a job keeps the state of its unfinished training."""
        return f"results/{self.scale}/state/{self.run_of(wildcards).hash}"

    def manifest_of(self, wildcards) -> str:
        """Manifest of the corpus that a job trains or evaluates on."""
        name = self.run_of(wildcards).settings["corpus"]["name"]
        return f"results/{self.scale}/data/{name}/manifest.json"

    def threads_of(self, wildcards) -> int:
        """Threads of a job's training, which are part of its settings."""
        return self.run_of(wildcards).settings["training"]["threads"]

    def evaluation_of(self, wildcards) -> str:
        """How a job's run is evaluated, as canonical JSON."""
        return self.evaluation(wildcards.experiment)

    @property
    def gpus(self) -> int:
        """GPUs that a job asks for: one where config says cuda, or auto finds a driver on this machine."""
        return int(self.config["device"] == "cuda" or (self.config["device"] == "auto" and GPU_DRIVER.exists()))

    def training_sources(self, wildcards) -> list[str]:
        """The source files that can change what a job trains: the loop, the model, its own method's parts."""
        parts = {"separated", "cross_entropy"} | {
            part["name"] for part in self.run_of(wildcards).settings["method"].values() if isinstance(part, dict)
        }
        files = [*TRAINING_SOURCES, *(f"methods/{name}" for name in sorted(parts))]
        return [f"workflow/raretok/{name}.py" for name in files]

    # What the report asks.

    def metrics_files(self, paper: str | None = None) -> list[str]:
        """metrics.json of every run, or of one paper's."""
        return [f"{self.folder(run)}/metrics.json" for run in self.runs.values() if paper in (None, run.paper)]

    def arrays_for(self, paper: str, item: str) -> list[str]:
        """arrays.npz of every run that a table or figure shows."""
        shown = self.item(paper, item).get("methods", [])
        return [
            f"{self.folder(run)}/arrays.npz" for run in self.runs.values() if run.paper == paper and run.method in shown
        ]

    def gpt2_files(self, paper: str) -> list[str]:
        """What is measured of every GPT-2 that a paper reports on."""
        models = self.papers[paper].get("gpt2", {"models": {}})["models"]
        return [f"results/{self.scale}/gpt2/{model['repository']}.json" for model in models.values()]

    def item(self, paper: str, item: str) -> dict:
        """The config entry of a table or figure; UserError when there is none."""
        entries = self.papers[paper]["tables"] | self.papers[paper]["figures"]
        if item not in entries:
            raise UserError(f"config/papers/{paper}.yaml has no table or figure {item!r}; it has {', '.join(entries)}")
        return entries[item]

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
                "comparable": not self.scale_settings["papers"].get(paper),
                "methods": {
                    name: {
                        "label": method["label"],
                        "experiment": self.experiments_of(paper, name)[0],
                        "seeds": self.seeds,
                    }
                    for name, method in settings["methods"].items()
                    if shown is None or name in shown
                },
                "tables": {key: entry for key, entry in settings["tables"].items() if item in (None, key)},
                "figures": {key: entry for key, entry in settings["figures"].items() if item in (None, key)},
                "gpt2": settings.get("gpt2", {}),
                "settings": settings["experiments"],
            },
            ensure_ascii=False,
        )


def load(config: dict, root: Path | str = ".") -> Workflow:
    """The run table for the rules; see `raretok.runs.load` for what it raises."""
    return runs.load(config, root, Workflow)
