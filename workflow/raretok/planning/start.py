"""What the Snakefile calls when the workflow starts. It imports little, since every dry run loads it."""

import json
import subprocess
import sys
from collections.abc import Iterable

from raretok.errors import UserError
from raretok.runs import RUN_NAME
from raretok.wiring import Workflow


def before_start(table: Workflow, jobs: Iterable, elsewhere: bool) -> None:
    """What the workflow calls when it starts: check what `jobs` of Snakemake need, if they train anything.

    elsewhere: whether jobs run on other machines than this one. Raises UserError with the reason.
    """
    jobs = list(jobs)
    runs = sorted(RUN_NAME.format(**job.wildcards_dict) for job in jobs if job.rule.name == "train")
    if not runs:
        return
    files = [f"{job.wildcards.dataset}/{job.wildcards.file}" for job in jobs if job.rule.name == "download"]
    command = [sys.executable, "-m", "raretok", "preflight", "--root", str(table.root)]
    command += ["--config", *config_words(table.config), *(["--elsewhere"] if elsewhere else [])]
    finished = subprocess.run([*command, "--only", *runs, "--files", *files], stderr=subprocess.PIPE, text=True)
    if finished.returncode:
        raise UserError(finished.stderr.strip().rpartition("error: ")[2])


def config_words(config: dict) -> list[str]:
    """The values of config.yaml, as --config takes them."""
    return [f"{key}={json.dumps(value)}" for key, value in config.items()]
