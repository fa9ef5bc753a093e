"""Training processes that tests kill, forked from one that has imported torch."""

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

from rarepapers.core.files import CHECKPOINT

# A fork of this server starts in milliseconds; a new process imports torch for a second or two. The server itself
# computes nothing, so that no thread is lost in a fork.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["rarepapers.training.loop", "rarepapers.training.train_command", "rarepapers.data.characters.prepare"]
)


def write_to(log):
    """Append what this process prints to a file."""
    with open(log, "a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)


def run(arguments, log, hang):
    """Run `raretok` with these arguments, with its output in the file `log`; `Training` explains `hang`."""
    write_to(log)
    from rarepapers.__main__ import main

    if hang:
        _hang_at(*hang)
    sys.exit(main(arguments))


def _hang_at(name, number, marker):
    """Let write `number` of files with `name` in their path hang after writing its data, before its rename."""
    import rarepapers.core.files as files

    real, writes = files._sync, []

    def slow(path):
        if name in str(path):
            writes.append(path)
            if len(writes) == number:
                Path(marker).touch()
                time.sleep(600)
        real(path)

    files._sync = slow


class Training:
    """A training in its own process.

    hang: (part of a path, number of the write of such a path that hangs, file that appears then). code: a program
    to run in place of `python -m rarepapers`, with its first arguments; such a process is not forked. further: more
    arguments.
    """

    def __init__(
        self,
        folder,
        manifest,
        run_json,
        hang=None,
        code=None,
        checkpoint_steps=20,
        log=None,
        further=(),
    ):
        self.output, self.state = folder / "output", folder / "state"
        self.log = log or folder / "log.txt"
        arguments = ["train", "--run", run_json, "--manifest", str(manifest), "--device", "cpu"]
        arguments += ["--output", str(self.output), "--state", str(self.state)]
        arguments += ["--checkpoint-steps", str(checkpoint_steps), *further]
        self.log.touch()
        if code:
            with self.log.open("a") as file:
                self.process = subprocess.Popen([sys.executable, "-c", *code, *arguments], stdout=file, stderr=file)
        else:
            self.process = FORKS.Process(target=run, args=(arguments, str(self.log), hang), daemon=True)
            self.process.start()

    def status(self):
        """The exit status, None while it runs."""
        return self.process.exitcode if isinstance(self.process, FORKS.Process) else self.process.poll()

    def wait_for(self, condition, seconds=60):
        """Wait until condition() is true while the process lives."""
        end = time.monotonic() + seconds
        while not condition():
            assert self.status() is None, "training ended before it could be interrupted: " + self.text()
            assert time.monotonic() < end
            time.sleep(0.001)

    def wait_for_checkpoints(self, number):
        """Wait until the checkpoint has been replaced `number` times."""
        seen = set()

        def enough():
            path = self.state / CHECKPOINT
            if path.exists():
                file = path.stat()
                seen.add((file.st_ino, file.st_mtime_ns))  # a new file may get the inode of one that was replaced
            return len(seen) >= number

        self.wait_for(enough)

    def end(self, number=None):
        """Send a signal, if any; wait; return the exit status."""
        if number:
            os.kill(self.process.pid, number)
        if isinstance(self.process, FORKS.Process):
            self.process.join(120)
        else:
            self.process.wait(timeout=120)
        return self.status()

    def text(self):
        """The contents of its log."""
        return self.log.read_text()
