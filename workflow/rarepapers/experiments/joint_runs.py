"""Groups of runs that one job trains together.

This module and what it imports stay free of torch: Snakemake loads it on every dry run.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rarepapers.core.config_files import canonical_json
from rarepapers.core.errors import UserError
from rarepapers.experiments.methods import build_method
from rarepapers.experiments.run_table import HASH_DIGITS, Run

# What runs of a group may differ in; all other settings are equal.
OWN = ("method", "seed")


@dataclass(frozen=True)
class JointRuns:
    """Runs that are trained together; their settings differ only in seed and method."""

    runs: tuple[Run, ...]

    @property
    def hash(self) -> str:
        """Digest of the runs, in order, which names the group."""
        return hashlib.sha256(" ".join(run.hash for run in self.runs).encode()).hexdigest()[:HASH_DIGITS]

    def json(self) -> str:
        """The group as `rarepapers train-together --runs` takes it, with shared settings once."""
        shared = {key: value for key, value in self.runs[0].settings.items() if key not in OWN}
        own = [vars(run) | {"settings": {key: run.settings[key] for key in OWN}} for run in self.runs]
        return canonical_json({"settings": shared, "runs": own})


def reason_against(settings: dict) -> str | None:
    """Why a run with these settings cannot be trained together with others; None if it can."""
    model, training = settings["model"], settings["training"]
    if "low_resource_probability" not in settings["corpus"]:
        return "its corpus is not of characters"
    if model["name"] != "decoder":
        return "its model is no decoder"
    if model.get("dropout") or model.get("attention_dropout"):
        return "its model has dropout"
    if model.get("output_bias"):
        return "its output layer has a bias (model.output_bias)"
    if training.get("accumulation", 1) != 1:
        return "its steps have several micro-batches (training.accumulation)"
    if training.get("precision", "float32") != "float32":
        return "it computes in bfloat16 (training.precision)"
    if training.get("activation_checkpointing"):
        return "it recomputes activations (training.activation_checkpointing)"
    method = build_method(settings["method"])
    if hasattr(method.penalty, "parametrise") or hasattr(method.embedding_update, "parametrise"):
        return "its output matrix is made from factors"
    return None


def shape_of(settings: dict) -> str:
    """Canonical JSON of the settings that all runs of a group share."""
    return canonical_json({key: value for key, value in settings.items() if key not in OWN})


def group_runs(runs: Iterable[Run], together: int) -> list[JointRuns]:
    """Groups of at most `together` runs, filled seed by seed, so that further seeds do not change full groups.

    A run without a partner is in no group.
    """
    shapes: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        if reason_against(run.settings) is None:
            shapes.setdefault(run.experiment + shape_of(run.settings), []).append(run)
    parts = [found[k : k + together] for found in shapes.values() for k in range(0, len(found), together)]
    return [JointRuns(tuple(part)) for part in parts if len(part) > 1]


def read_joint_runs(text: str) -> JointRuns:
    """The runs of `train-together --runs`: the text of `JointRuns.json`, or @FILE with lines of `runs --json`.

    Raises UserError for other JSON, for runs of different shapes, and for a run that cannot be trained with others.
    """
    try:
        if text.startswith("@"):
            runs = [
                json.loads(line) for line in Path(text[1:]).read_text(encoding="utf-8").splitlines() if line.strip()
            ]
        else:
            described = json.loads(text)
            runs = [run | {"settings": described["settings"] | run["settings"]} for run in described["runs"]]
        stack = JointRuns(tuple(Run(**run) for run in runs))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"--runs is not lines of `runs --json`: {error}") from None
    check_stack(stack.runs)
    return stack


def check_stack(runs: Sequence[Run]) -> None:
    """Raises UserError if these runs cannot be trained together."""
    if not runs:
        raise UserError("--runs names no run")
    for run in runs:
        reason = reason_against(run.settings)
        if reason:
            raise UserError(f"{run.name} cannot be trained together with others: {reason}")
        if shape_of(run.settings) != shape_of(runs[0].settings):
            raise UserError(
                f"{run.name} and {runs[0].name} cannot be trained together: their settings differ in more than seed "
                "and method"
            )
    if len({run.hash for run in runs}) < len(runs):
        raise UserError("--runs names a run twice")
