"""Fork server: processes that have imported slow libraries and are forked for every short job.

A job of scale smoke computes for a second, while its imports (torch, pandas, seaborn) take two or three. The Snakefile
therefore starts one server for each kind of job that is frequent enough (`start`). `python -m rarepapers train ...`
asks it to fork a copy of itself that does the job, passes on its file descriptors, arguments, folder, environment and
signals, and exits as the copy does (`run_elsewhere`). A server computes nothing, so a copy gives the same result as a
separate process, bit for bit. Only third-party libraries are preloaded: every job imports this project's code afresh.

A job runs without a server if none answers, as on a cluster, or if the server was started differently (another Python,
another number of threads). If the requesting process is killed, so is its copy. When Snakemake ends, for whatever
reason, servers end after their last copy.
"""

import array
import contextlib
import ctypes
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

# Folder of the sockets of this workflow's servers.
VARIABLE = "RARETOK_SERVERS"
# For each kind of job, its commands; below, the libraries that its server imports.
COMMANDS = {
    "train": ("train",),
    "evaluate": ("evaluate", "compare", "measure-gpt2"),
    "report": ("collect", "cost", "table", "figure", "claims", "agreement", "page", "readme"),
}
LIBRARIES = {
    "train": ("torch", "safetensors.torch", "yaml", "filelock"),
    "evaluate": ("torch", "safetensors.torch", "yaml", "filelock", "scipy.optimize", "sacrebleu"),
    "report": (
        "matplotlib.backends.backend_svg",
        "matplotlib.backends.backend_pdf",
        "seaborn",
        "scipy.stats",
        "jinja2",
    ),
}
# Bytes of an answer, since process id and exit status of a copy may arrive together.
ANSWER = 16
# For fewer jobs, a server would save no time.
FEWEST = 3
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
# Variables that differ between jobs without affecting results.
OWN = frozenset({"_", "OLDPWD", "PWD", "SHLVL", "TEMP", "TEMPDIR", "TMP", "TMPDIR"})
# The variables that Snakemake sets to a job's number of threads.
THREADS = ("OMP", "GOTO", "OPENBLAS", "MKL", "NUMEXPR")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in THREADS} | {"VECLIB_MAXIMUM_THREADS": "1"}
# Option of prctl: the signal that this process gets when its parent ends.
PR_SET_PDEATHSIG = 1


def start(jobs: Mapping[str, int]) -> None:
    """Start a server for each kind of job (of COMMANDS) with enough jobs; at most once per process.

    Servers end with this process. There are none on systems other than Linux.
    """
    kinds = [kind for kind, number in jobs.items() if number >= FEWEST]
    if not kinds or not hasattr(os, "pidfd_open") or VARIABLE in os.environ:
        return
    folder = tempfile.mkdtemp(prefix="raretok-")
    os.environ[VARIABLE] = folder
    # The other end closes with this process, however it ends.
    lifeline, _ = os.pipe()
    for kind in kinds:
        subprocess.Popen(
            [sys.executable, "-m", "rarepapers.machine.fork_server", kind, str(lifeline)],
            env=os.environ | ONE_THREAD,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[lifeline],
            # Ctrl-C reaches the requesting processes, which pass it on to their copies.
            start_new_session=True,
        )
    os.close(lifeline)


# The requesting process.


def run_elsewhere(arguments: list[str]) -> int | None:
    """Exit status of `python -m rarepapers` with these arguments, in a copy of a server; None if no server answers."""
    folder = os.environ.get(VARIABLE)
    kind = next((kind for kind, commands in COMMANDS.items() if {*arguments[:1]} & {*commands}), None)
    if folder is None or kind is None:
        return None
    with socket.socket(socket.AF_UNIX) as connection:
        # Delay signals until there is a copy to pass them on to.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            connection.connect(f"{folder}/{kind}.sock")
            answer = ask(connection, arguments)
            if not answer:
                return None
            for number in set(SIGNALS) - set(ignored()):
                signal.signal(number, lambda number, frame: signal_copy(int(answer), number))
        except OSError:
            return None
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        status = connection.recv(ANSWER, socket.MSG_WAITALL)
    # A server that ends kills its copies.
    return int(status) if status else 128 + signal.SIGKILL


def ask(connection: socket.socket, arguments: list[str]) -> bytes:
    """Request a copy; its process id, or b"" if the server was started differently from this process."""
    job = {
        "arguments": arguments,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "prefix": sys.prefix,
        "ignored": ignored(),
    }
    message = json.dumps(job).encode()
    files = array.array("i", [0, 1, 2])
    header = len(message).to_bytes(8, "big")
    connection.sendmsg([header], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
    connection.sendall(message)
    return connection.recv(ANSWER, socket.MSG_WAITALL)


def ignored() -> list[int]:
    """Signals that this process has ignored since its start, as under nohup."""
    return [int(number) for number in SIGNALS if signal.getsignal(number) == signal.SIG_IGN]


def signal_copy(pid: int, number: int) -> None:
    """Pass a signal on to a copy."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


# The server.


class Copies:
    """The server's loop: it answers requests with copies, and reports how copies end.

    lifeline: a file descriptor that is closed when the workflow ends.
    """

    def __init__(self, listener: socket.socket, lifeline: int):
        self.listener = listener
        self.events = selectors.DefaultSelector()
        self.events.register(listener, selectors.EVENT_READ, self.accept)
        self.events.register(lifeline, selectors.EVENT_READ, self.close)
        # By file descriptor of the copy (pidfd): its process id, and the connection to the requesting process.
        self.working: dict[int, tuple[int, socket.socket]] = {}
        self.is_open = True

    def serve(self) -> dict | None:
        """Serve until the workflow has ended and no copy is left, then return None. In a copy: return its job."""
        while self.is_open or self.working:
            for key, _ in self.events.select():
                # An earlier event may have closed its file descriptor.
                if key.fd in self.events.get_map():
                    job = key.data(key.fileobj)
                    if job is not None:
                        return job
        return None

    def close(self, lifeline: int) -> None:
        """Accept no more requests."""
        self.events.unregister(lifeline)
        self.events.unregister(self.listener)
        self.listener.close()
        self.is_open = False

    def accept(self, listener: socket.socket) -> dict | None:
        """Fork a copy for a request; in the copy, return the job."""
        connection, _ = listener.accept()
        try:
            job, files = receive(connection)
        except (OSError, ValueError):
            connection.close()
            return None
        if not is_alike(job):
            close_all(files)
            connection.close()
            return None
        # Delay signals until the copy is ready for them.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        pid = os.fork()
        if pid == 0:
            return job | {"files": files, "server": self, "connection": connection}
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        close_all(files)
        copy = os.pidfd_open(pid)
        self.working[copy] = pid, connection
        self.events.register(copy, selectors.EVENT_READ, self.end)
        self.events.register(connection, selectors.EVENT_READ, lambda _: self.hear(copy))
        with contextlib.suppress(OSError):
            connection.sendall(str(pid).encode().ljust(ANSWER))
        return None

    def hear(self, copy: int) -> None:
        """The requesting process has ended, so kill its copy."""
        pid, connection = self.working[copy]
        self.events.unregister(connection)
        os.kill(pid, signal.SIGKILL)

    def end(self, copy: int) -> None:
        """Report how a copy ended."""
        pid, connection = self.working.pop(copy)
        self.events.unregister(copy)
        os.close(copy)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if connection in self.events.get_map():
            self.events.unregister(connection)
        with contextlib.suppress(OSError):
            connection.sendall(str(code if code >= 0 else 128 - code).encode().ljust(ANSWER))
        connection.close()

    def forget(self) -> None:
        """In a copy: close the server's file descriptors."""
        self.events.close()
        if self.is_open:
            self.listener.close()
        for copy, (_, connection) in self.working.items():
            os.close(copy)
            connection.close()


def receive(connection: socket.socket) -> tuple[dict, list[int]]:
    """A request and its files (standard input, output and error); raises ValueError if it is incomplete."""
    connection.settimeout(10)
    header, files, *_ = socket.recv_fds(connection, 8, 3)
    message, length = b"", int.from_bytes(header, "big")
    while len(message) < length:
        part = connection.recv(length - len(message))
        if not part:
            close_all(files)
            raise ValueError("a request ended early")
        message += part
    connection.settimeout(None)
    if len(files) != 3:
        close_all(files)
        raise ValueError("a request came without its files")
    return json.loads(message), files


def is_alike(job: dict) -> bool:
    """Whether a job would start as this server did, with the same Python and environment."""
    own, its = ({k: v for k, v in one.items() if k not in OWN} for one in (os.environ, job["environment"]))
    return job["prefix"] == sys.prefix and own == its


def close_all(files: list[int]) -> None:
    """Close file descriptors."""
    for file in files:
        os.close(file)


def do_job(job: dict, server: int) -> int:
    """Do a job in this copy of process `server`; returns the exit status."""
    # Kill this copy if its server ends.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        return 128 + signal.SIGKILL
    job["server"].forget()
    job["connection"].close()
    for number, file in enumerate(job["files"]):
        os.dup2(file, number)
        os.close(file)
    for number in SIGNALS:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in job["ignored"] else usual)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    os.environ.clear()
    os.environ.update(job["environment"])
    os.chdir(job["folder"])
    command = importlib.import_module("rarepapers.__main__")
    sys.argv = [command.__file__, *job["arguments"]]
    return command.main(job["arguments"])


def main() -> int:
    """Import the libraries of one kind of job, then serve: `python -m rarepapers.machine.fork_server KIND LIFELINE`."""
    kind, lifeline = sys.argv[1], int(sys.argv[2])
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    path = Path(os.environ[VARIABLE]) / f"{kind}.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        # Jobs that arrive meanwhile wait in the queue, which is faster than running without a server.
        listener.bind(str(path))
        listener.listen(128)
        for library in LIBRARIES[kind]:
            importlib.import_module(library)
        # Memory pages that are never written stay shared with copies.
        gc.freeze()
        server = os.getpid()
        job = Copies(listener, lifeline).serve()
    if job is not None:
        return do_job(job, server)
    path.unlink()
    with contextlib.suppress(OSError):
        path.parent.rmdir()  # by the last server
    return 0


if __name__ == "__main__":
    sys.exit(main())
