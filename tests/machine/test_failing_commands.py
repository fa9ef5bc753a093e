"""A node on which two runs failed gets no further attempts; users' mistakes and stops do not count.

A full disk is one sentence.
"""

import argparse
import contextlib
import errno
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from rarepapers.core.errors import Interrupted, UserError
from rarepapers.machine import commands
from rarepapers.machine.slurm import failing_nodes

RULES = (Path(__file__).parents[2] / "workflow" / "rules").glob("*.smk")


@pytest.fixture
def log(tmp_path, monkeypatch, capsys):
    """Write to the log of a job: its number, its node, and its error, if any."""

    def write(number, node, error):
        def command(arguments):
            if error:
                raise error

        monkeypatch.setenv("SLURMD_NODENAME", node)
        with pytest.raises(type(error)) if error else contextlib.nullcontext():
            commands.run("train", command, argparse.Namespace())
        path = tmp_path / f"{number}.txt"
        with path.open("a") as file:
            file.write(capsys.readouterr().err)
        return path

    return write


def test_a_node_with_two_failed_runs_gets_no_further_attempt(log):
    broken = RuntimeError("CUDA error: uncorrectable ECC error")
    logs = {log(0, "n07", broken), log(0, "n07", broken), log(1, "n08", broken)}
    assert failing_nodes(logs) == []
    assert failing_nodes([*logs, log(2, "n07", broken)]) == ["n07"]
    # A later success of a run takes back its failures.
    assert failing_nodes([*logs, log(2, "n08", None)]) == []
    assert failing_nodes([*logs, log(2, "n07", broken)]) == ["n07"]


@pytest.mark.parametrize("error", [UserError("the loss is not finite"), Interrupted("SIGTERM")])
def test_other_failures_do_not_count_against_the_node(log, error):
    assert failing_nodes([log(0, "n07", error), log(1, "n07", error)]) == []


@pytest.mark.parametrize(("file", "said"), [("/x", "the disk is full (/x); make room"), (None, "is full; make room")])
def test_a_full_disk_is_one_sentence(monkeypatch, capsys, file, said):
    def command(arguments):
        raise OSError(errno.ENOSPC, "no space", file)

    module = SimpleNamespace(add_arguments=lambda parser: None, main=command)
    monkeypatch.setattr(commands.importlib, "import_module", lambda name: module)
    assert commands.main(["runs"]) == 2
    assert said in capsys.readouterr().err


def test_the_help_lists_commands_of_users_first(capsys):
    with pytest.raises(SystemExit):
        commands.main(["--help"])
    users, rules = capsys.readouterr().out.split("commands that the rules call:")
    assert "\n  status " in users
    assert "\n  train " in rules
    called = set(re.findall(r"-m rarepapers ([a-z0-9-]+)", "".join(path.read_text() for path in RULES)))
    assert called == set(commands.FOR_RULES)
