"""A node on which two runs failed gets no further attempts; users' mistakes and stops do not count.

A full disk is one sentence.
"""

import argparse
import errno
from types import SimpleNamespace

import pytest

from raretok.core.errors import Interrupted, UserError
from raretok.machine import commands
from raretok.machine.slurm import failing_nodes


@pytest.fixture
def log(tmp_path, monkeypatch, capsys):
    """Write the log of a job: its number, its node, and the end of its command."""

    def write(number, node, error):
        def command(arguments):
            raise error

        monkeypatch.setenv("SLURMD_NODENAME", node)
        with pytest.raises(type(error)):
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
