"""What the Snakefile calls when the workflow starts. It imports little, since every dry run loads it."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from raretok.core.errors import EXIT_USER_ERROR, UserError
from raretok.experiments.run_table import RUN_NAME
from raretok.machine import fork_server
from raretok.rule_inputs.job_inputs import Workflow


def before_start(table: Workflow, jobs: Iterable, elsewhere: bool) -> None:
    """What the workflow calls when it starts: check what `jobs` of Snakemake need, if they train anything.

    elsewhere: whether jobs run on other machines than this one. Raises UserError with the reason.
    """
    jobs = list(jobs)
    if not elsewhere:
        # What may compute on a GPU starts by itself.
        on_gpu = {job.rule.name for job in jobs if "gpu_percent" in job.rule.resources} if table.gpu_percent else set()
        fork_server.start([job.rule.name for job in jobs if job.rule.name not in on_gpu])
    if table.outdated:
        print(table.warning(), file=sys.stderr)
    if table.render_only:
        return
    note_host(table.root)
    runs = sorted(RUN_NAME.format(**job.wildcards_dict) for job in jobs if job.rule.name == "train")
    if not runs:
        return
    files = [f"{job.wildcards.dataset}/{job.wildcards.file}" for job in jobs if job.rule.name == "download"]
    command = [sys.executable, "-m", "raretok", "preflight", "--root", str(table.root)]
    command += ["--config", *config_words(table.config), *(["--elsewhere"] if elsewhere else [])]
    finished = subprocess.run([*command, "--only", *runs, "--files", *files], stderr=subprocess.PIPE, text=True)
    if finished.returncode == EXIT_USER_ERROR:
        raise UserError(finished.stderr.strip().rpartition("error: ")[2])
    if finished.returncode:
        # Jobs may have environments of their own, with what is missing in this one.
        reason = (finished.stderr.strip().splitlines() or ["no reason given"])[-1]
        print(f"raretok: not checked before the start ({reason})", file=sys.stderr)


def note_host(root: Path) -> None:
    """Write down on which machine Snakemake is at work: `make` never clears the lock of one on another."""
    (root / ".snakemake" / "host").write_text(socket.gethostname())


def config_words(config: dict) -> list[str]:
    """The values of config.yaml, as --config takes them."""
    return [f"{key}={json.dumps(value)}" for key, value in config.items()]
