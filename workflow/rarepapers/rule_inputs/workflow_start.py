"""Functions that the Snakefile calls when the workflow starts; few imports, since every dry run loads them."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from snakemake_interface_executor_plugins.settings import DeploymentMethod, SharedFSUsage

from rarepapers.core.code_digest import PACKAGES
from rarepapers.core.errors import EXIT_USER_ERROR, UserError
from rarepapers.experiments.run_table import RunTable
from rarepapers.machine import fork_server
from rarepapers.rule_inputs.per_job import per_job
from rarepapers.rule_inputs.report import outdated
from rarepapers.rule_inputs.requested_jobs import files_to_get, jobs_to_run, runs_to_train
from rarepapers.rule_inputs.resources import gpu_percent
from rarepapers.training.refusal import WORKFLOW

# What machines must share: --shared-fs-usage.
NEEDS_SHARED = {SharedFSUsage.PERSISTENCE, SharedFSUsage.INPUT_OUTPUT, SharedFSUsage.SOURCES}


def before_start(table: RunTable, dag, elsewhere: bool) -> None:
    """Start the fork servers and, if runs are to be trained, check whether they can be.

    dag: Snakemake's graph of jobs. elsewhere: whether jobs run on other machines. Raises UserError with the reason if
    something would fail.
    """
    jobs = jobs_to_run(dag)
    runs = runs_to_train(table, jobs)
    os.environ[WORKFLOW] = f"{socket.gethostname()} {os.getpid()} {time.time():.0f}"
    if not elsewhere:
        # Jobs that may compute on a GPU start by themselves.
        on_cpu = {} if gpu_percent(table) else {"train": len(runs), "evaluate": len(jobs["evaluate"])}
        fork_server.start(on_cpu | {"report": len(jobs["table"]) + len(jobs["figure"])})
    if outdated(table):
        print(left_out(outdated(table)), file=sys.stderr)
    if table.render_only:
        return
    note_host(table.root)
    if not runs:
        return
    files = files_to_get(table, jobs)
    command = [
        sys.executable,
        "-m",
        "rarepapers",
        "preflight",
        "--root",
        str(table.root),
        "--project",
        str(table.project),
    ]
    command += ["--config", *config_words(table.config), *(["--elsewhere"] if elsewhere else [])]
    command += ["--only", *(run.name for run in runs), "--files", *(f"{one.dataset}/{one.name}" for one in files)]
    finished = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if finished.returncode == EXIT_USER_ERROR:
        raise UserError(finished.stderr.strip().rpartition("error: ")[2])
    if finished.returncode:
        # Only a note: jobs may have environments of their own, with packages that are missing here.
        reason = (finished.stderr.strip().splitlines() or ["no reason given"])[-1]
        print(f"raretok: not checked before the start ({reason})", file=sys.stderr)


def left_out(folders: list[str]) -> str:
    """A message that the report leaves out the outdated runs in these folders."""
    more = f", and {len(folders) - 1} more" if len(folders) > 1 else ""
    return (
        f"left out, made with other settings than the config has now: {folders[0]}{more}; "
        "without finished=true or recorded=true they are made again"
    )


def note_host(root: Path) -> None:
    """Record the host that Snakemake runs on: `make` never clears the lock of a Snakemake on another host."""
    (root / ".snakemake" / "host").write_text(socket.gethostname())


def use_this_checkout() -> None:
    """Make `python -m rarepapers` in jobs use these packages and this Python, even if its environment is not active."""
    packages = os.pathsep.join(str(folder.parent) for folder in PACKAGES.values())
    for variable, folder in (("PYTHONPATH", packages), ("PATH", str(Path(sys.executable).parent))):
        os.environ[variable] = os.pathsep.join(filter(None, [folder, os.environ.get(variable)]))


def check_writable(folder: Path) -> None:
    """Raise UserError if Snakemake cannot write its records below `folder`, as it does even for a dry run."""
    records = folder / ".snakemake"
    if not os.access(records if records.exists() else folder, os.W_OK):
        raise UserError(
            f"{folder.resolve()} is not writable, but Snakemake writes there, even with -n; copy the project, or name "
            "a folder of your own with --directory"
        )


def check_shared_disk(usage: Iterable[SharedFSUsage], provider: str | None) -> None:
    """Raise UserError if jobs would not see the same files as Snakemake.

    usage: what machines share (--shared-fs-usage). provider: of --default-storage-provider.
    """
    if provider or not set(usage) >= NEEDS_SHARED:
        raise UserError(
            "this workflow needs a disk that all machines share, because unfinished trainings and the Python packages "
            "of this checkout lie beside the results; put the checkout there, and leave out --shared-fs-usage and "
            "--default-storage-provider (docs/cluster.md)"
        )


def check_no_containers(methods: Iterable[DeploymentMethod]) -> None:
    """Raise UserError if rules shall run in containers (--software-deployment-method), which they do not have."""
    if DeploymentMethod.APPTAINER in methods:
        raise UserError(
            "the rules have no containers of their own; leave out apptainer here, and start Snakemake inside the "
            "container of envs/raretok.def, whose first lines say how"
        )


def wildcard_patterns(table: RunTable) -> dict[str, str]:
    """Constraints of the wildcards, so that no rule matches a target with an unknown name.

    They do not reach wildcards in a pathvar, as in rules train and evaluate, where `RunTable.run` refuses such names.
    """
    names = {
        "experiment": [name for paper in table.papers.values() for name in paper["experiments"]],
        "seed": map(str, table.seeds),
        "paper": table.papers,
        "corpus": table.corpora,
    }
    return {wildcard: any_of(known) for wildcard, known in names.items()}


def item_pattern(table: RunTable, section: str) -> str:
    """Constraint of the wildcard `item`: the papers' `tables`, or their `figures`."""
    return any_of(item for paper in table.papers.values() for item in paper[section])


def other_scales(table: RunTable) -> str:
    """Constraint of the wildcard `scale` of a target that this config does not make."""
    names = (path.stem for path in (table.project / "config" / "scales").glob("*.yaml"))
    return any_of(name for name in names if name != table.scale)


@per_job
def refuse_scale(table: RunTable, wildcards) -> list[str]:
    """Raise UserError: the target belongs to another scale."""
    raise UserError(
        f"results/{wildcards.scale}/{wildcards.file} is of scale {wildcards.scale}, but the config says {table.scale}; "
        f"add --config scale={wildcards.scale}"
    )


def any_of(names: Iterable[str]) -> str:
    """A regular expression that matches these names."""
    return "|".join(map(re.escape, dict.fromkeys(names)))


def config_words(config: dict) -> list[str]:
    """The values of a config as KEY=VALUE, for --config."""
    return [f"{key}={json.dumps(value)}" for key, value in config.items()]
