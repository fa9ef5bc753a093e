"""The fork server: a fork runs a job with the files, environment, signals and exit status of the process that asked."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import psutil
import pytest

from rarepapers.machine import fork_server

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="servers are for Linux")

# A server that imports nothing, with commands for these tests instead of raretok's.
SERVER = """
import sys, types
from rarepapers.machine import fork_server as forkserver
forkserver.LIBRARIES = {"report": ("json",)}
command = types.ModuleType("rarepapers.__main__")
command.__file__ = "__main__.py"
exec(sys.argv.pop(3), vars(command))
sys.modules["rarepapers.__main__"] = command
sys.exit(forkserver.main())
"""
JOB = """
import os, signal, sys, time
def main(arguments):
    what, *rest = arguments[1:]
    if what == "say":
        print(os.getcwd(), os.environ.get("PWD"), *rest)
        print("an error", file=sys.stderr)
        return 3
    if what == "read":
        print(sys.stdin.read().upper(), end="")
    if what == "wait":
        caught = []
        signal.signal(signal.SIGTERM, lambda number, frame: caught.append(number))
        open(rest[0], "w").write(str(os.getpid()))
        while not caught:
            time.sleep(0.01)
        return 75
    if what == "fall":
        os.kill(os.getpid(), signal.SIGABRT)
"""
ASK = """
import sys
from rarepapers.machine import fork_server as forkserver
status = forkserver.run_elsewhere(sys.argv[1:])
sys.exit(99 if status is None else status)
"""
ALONE = 99


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server for reports; this process is the workflow whose jobs ask it."""
    folder = tmp_path / "servers"
    folder.mkdir()
    monkeypatch.setenv(fork_server.VARIABLE, str(folder))
    lifeline, end = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, "report", str(lifeline), JOB], pass_fds=[lifeline], env=environment()
    )
    os.close(lifeline)
    wait_for(lambda: (folder / "report.sock").exists())
    process.lifeline = end
    yield process
    with contextlib.suppress(OSError):
        os.close(end)
    process.kill()
    process.wait()


def environment(**changes):
    """The environment of this process, without the variable that pytest keeps changing."""
    return {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"} | changes


def wait_for(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def ask(*arguments, **options):
    options = {"env": environment(), "text": True} | options
    return subprocess.Popen([sys.executable, "-c", ASK, "table", *map(str, arguments)], **options)


def started(path, **options):
    """A job that waits for a signal: the process that asked, and the process id of the fork."""
    process = ask("wait", path, **options)
    wait_for(lambda: path.exists() and path.read_text())
    return process, int(path.read_text())


def test_a_fork_has_the_files_folder_environment_and_status_of_its_job(server, tmp_path):
    with (tmp_path / "log").open("w") as log:
        process = ask("say", "it", cwd=tmp_path, stdout=log, stderr=log, env=environment(PWD="here"))
    assert process.wait() == 3
    assert sorted((tmp_path / "log").read_text().splitlines()) == sorted([f"{tmp_path} here it", "an error"])
    process = ask("read", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.communicate("aloud") == ("ALOUD", None)


def test_a_job_with_another_environment_does_not_fork(server):
    assert ask("say", env=environment(OMP_NUM_THREADS="7")).wait() == ALONE
    assert ask("say", env=environment(PWD="/elsewhere", TMPDIR="/tmp"), stdout=subprocess.DEVNULL).wait() == 3


def test_without_a_server_a_job_does_not_fork(server, tmp_path):
    assert fork_server.run_elsewhere(["train"]) is None  # which has no server here
    assert fork_server.run_elsewhere(["runs", "--json"]) is None
    assert fork_server.run_elsewhere([]) is None


def test_a_signal_reaches_the_fork(server, tmp_path):
    process, _ = started(tmp_path / "pid")
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 75


def test_killing_a_job_kills_its_fork_and_is_reported(server, tmp_path):
    process, copy = started(tmp_path / "pid")
    process.kill()
    wait_for(lambda: not psutil.pid_exists(copy))
    assert ask("fall").wait(20) == 128 + signal.SIGABRT
    process, copy = started(tmp_path / "another")
    server.kill()
    assert process.wait(20) == 128 + signal.SIGKILL
    wait_for(lambda: not psutil.pid_exists(copy) or psutil.Process(copy).status() == psutil.STATUS_ZOMBIE)
    assert ask("say").wait() == ALONE


def test_jobs_run_side_by_side(server, tmp_path):
    first, second = started(tmp_path / "1"), started(tmp_path / "2")
    assert first[1] != second[1]
    for process, _ in (second, first):
        process.terminate()
        assert process.wait(20) == 75


def test_a_server_ends_after_the_workflow_and_its_last_fork(server, tmp_path):
    process, _ = started(tmp_path / "pid")
    os.close(server.lifeline)
    wait_for(lambda: ask("say").wait() == ALONE)
    assert server.poll() is None
    process.terminate()
    assert process.wait(20) == 75
    assert server.wait(20) == 0
    assert not (tmp_path / "servers").exists()


def test_a_fork_ignores_the_signals_that_its_job_ignores(server, tmp_path):
    process, copy = started(tmp_path / "pid", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    for one in (process, psutil.Process(copy)):
        one.send_signal(signal.SIGHUP)
    time.sleep(0.1)
    assert process.poll() is None
    process.terminate()
    assert process.wait(20) == 75


def test_few_jobs_need_no_server(monkeypatch):
    monkeypatch.delenv(fork_server.VARIABLE, raising=False)
    monkeypatch.setattr(fork_server.subprocess, "Popen", None)
    fork_server.start({"train": 2, "report": 0})
    assert fork_server.VARIABLE not in os.environ


def test_commands_of_servers_are_those_of_rules():
    from rarepapers.machine.commands import COMMANDS

    assert {command for own in fork_server.COMMANDS.values() for command in own} <= COMMANDS.keys()
    assert fork_server.COMMANDS.keys() == fork_server.LIBRARIES.keys()


def test_a_job_may_end_before_its_start_is_read(tmp_path, monkeypatch):
    """On a busy machine, the process that asked may read process id and exit status at once."""
    monkeypatch.setenv(fork_server.VARIABLE, str(tmp_path))
    # This process is not the job, so signals must not be passed on.
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)

    def serve(listener):
        connection, _ = listener.accept()
        fork_server.close_all(fork_server.receive(connection)[1])
        answers = [str(number).encode().ljust(fork_server.ANSWER) for number in (os.getpid(), 3)]
        connection.sendall(b"".join(answers))

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{tmp_path}/report.sock")
        listener.listen()
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        assert fork_server.run_elsewhere(["table"]) == 3
        thread.join()
