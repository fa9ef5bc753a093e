"""Functions that the Snakefile calls when the workflow starts; few imports, since every dry run loads them."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from functools import partial
from inspect import signature
from pathlib import Path
from types import ModuleType, SimpleNamespace

from rarepapers.core.code_digest import PACKAGES
from rarepapers.core.errors import EXIT_USER_ERROR, UserError
from rarepapers.experiments.run_table import RunTable
from rarepapers.machine import fork_server
from rarepapers.rule_inputs.report import outdated
from rarepapers.rule_inputs.requested_jobs import requested, runs_to_evaluate, runs_to_train
from rarepapers.rule_inputs.required_files import files_of, is_here
from rarepapers.rule_inputs.resources import gpu_percent
from rarepapers.training.refusal import WORKFLOW


def before_start(table: RunTable, elsewhere: bool) -> None:
    """Start the fork servers and, if runs are to be trained, check whether they can be.

    elsewhere: whether jobs run on other machines. Raises UserError with the reason if something would fail.
    """
    runs = runs_to_train(table)
    os.environ[WORKFLOW] = f"{socket.gethostname()} {os.getpid()} {time.time():.0f}"
    if not elsewhere:
        # Jobs that may compute on a GPU start by themselves.
        on_cpu = {} if gpu_percent(table) else {"train": len(runs), "evaluate": len(runs_to_evaluate(table))}
        fork_server.start(on_cpu | {"report": len(requested(table).items)})
    if outdated(table):
        print(left_out(outdated(table)), file=sys.stderr)
    if table.render_only:
        return
    note_host(table.root)
    if not runs:
        return
    files = [one for one in files_of(table, runs, requested(table).checkpoints) if not is_here(table, one)]
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


def with_table(module: ModuleType, table: RunTable) -> SimpleNamespace:
    """The functions of a module of `rule_inputs`; those that take the run table get it as their first argument."""
    own = {name: one for name, one in vars(module).items() if callable(one) and one.__module__ == module.__name__}
    takes_table = (name for name, one in own.items() if "table" in signature(one).parameters)
    return SimpleNamespace(**own | {name: partial(own[name], table) for name in takes_table})


def wildcard_patterns(table: RunTable) -> dict[str, str]:
    """Constraints of the wildcards, so that no rule matches a target with an unknown name.

    They do not reach wildcards in a pathvar, as in rules train and evaluate, where `RunTable.run` refuses such names.
    """
    names = {
        "experiment": [name for paper in table.papers.values() for name in paper["experiments"]],
        "seed": map(str, table.seeds),
        "paper": table.papers,
    }
    return {wildcard: any_of(known) for wildcard, known in names.items()}


def item_pattern(table: RunTable, section: str) -> str:
    """Constraint of the wildcard `item`: the papers' `tables`, or their `figures`."""
    return any_of(item for paper in table.papers.values() for item in paper[section])


def any_of(names: Iterable[str]) -> str:
    """A regular expression that matches these names."""
    return "|".join(map(re.escape, dict.fromkeys(names)))


def config_words(config: dict) -> list[str]:
    """The values of a config as KEY=VALUE, for --config."""
    return [f"{key}={json.dumps(value)}" for key, value in config.items()]
