"""Clear the lock of a killed Snakemake before `make` starts another one; the lock of a running one stays.

A Snakemake that dies of kill -9 or a power cut leaves its lock behind, and the next one refuses to start. `--nolock`
would give up the protection altogether; this clears the lock only if no Snakemake is running. Jobs can outlive a killed
Snakemake, on this machine and in the queue of a cluster: they are stopped first, because two processes must not do
their work at the same time.
"""

import pathlib
import shutil
import socket
import subprocess
import sys
import time

import psutil

FOLDER = pathlib.Path.cwd()
LOCKS = FOLDER / ".snakemake" / "locks"
# The host on which Snakemake was last started (the Snakefile writes it, too): only its own processes can be seen.
HOST = FOLDER / ".snakemake" / "host"
# Seconds that a job may take to reach its next step and save its state.
PATIENCE = 120


def at_work(name: str, folder: pathlib.Path = FOLDER) -> list[int]:
    """Process ids of the program `name` (snakemake, rarepapers) running in `folder` on this machine."""
    found = []
    for process in psutil.process_iter():
        try:
            # `python -m snakemake`, `python .venv/bin/snakemake`, `python -m rarepapers train`
            command = process.cmdline()
            program, *words = (pathlib.PurePath(word).name for word in command[:4])
            # The Snakemake that another one starts for a single job holds no lock.
            is_one_job = name == "snakemake" and "--nolock" in command
            if program.startswith("python") and name in words and process.cwd() == str(folder) and not is_one_job:
                found.append(process.pid)
        except (psutil.Error, ValueError):
            continue  # gone by now, somebody else's, or a kernel thread without a command
    return found


def queued(folder: pathlib.Path = FOLDER) -> list[str]:
    """This user's jobs in SLURM's queue that Snakemake submitted from `folder`; empty without SLURM."""
    if shutil.which("squeue") is None:
        return []
    asked = ["squeue", "--me", "--noheader", "--format", "%A|%Z|%k"]
    lines = subprocess.run(asked, capture_output=True, text=True).stdout.splitlines()
    jobs = (line.split("|", 2) for line in lines)
    return [job for job, workdir, comment in jobs if workdir == str(folder) and comment.startswith("rule_")]


def cancel(jobs: list[str]) -> bool:
    """Cancel jobs in SLURM's queue, and wait while trainings save their state; returns whether all ended in time."""
    print(f"raretok: cancelling {len(jobs)} job(s) of a killed run in the queue; trainings save their state first")
    subprocess.run(["scancel", *jobs], check=False)
    end = time.monotonic() + PATIENCE
    while set(jobs) & set(queued()):
        if time.monotonic() > end:
            print(f"raretok: they did not end; cancel {' '.join(jobs)} by hand, then start again", file=sys.stderr)
            return False
        time.sleep(1)
    return True


def main() -> int:
    """Return 0 if Snakemake can start; else print the reason and return 1."""
    if at_work("snakemake"):
        return 0  # its lock is valid: Snakemake refuses files that both would make, and allows another scale
    host = socket.gethostname()
    is_locked = LOCKS.is_dir() and any(LOCKS.iterdir())
    before = HOST.read_text() if is_locked and HOST.exists() else host
    if before != host:
        print(
            f"raretok: this folder is locked by a run on {before}; if that has ended, "
            "clear the lock with `.venv/bin/snakemake --unlock`.",
            file=sys.stderr,
        )
        return 1
    left_over = queued()
    if left_over and not cancel(left_over):
        return 1
    jobs = [psutil.Process(pid) for pid in at_work("rarepapers")]
    if jobs:
        print(f"raretok: stopping {len(jobs)} job(s) of a killed run; trainings save their state first")
        for job in jobs:
            job.terminate()
        if psutil.wait_procs(jobs, timeout=PATIENCE)[1]:
            print("raretok: they did not stop; stop them by hand, then start again", file=sys.stderr)
            return 1
    if is_locked:
        print("raretok: an earlier run was killed; clearing its lock")
        subprocess.run([sys.executable, "-m", "snakemake", "--unlock", "--quiet", "all"], check=True)
    HOST.parent.mkdir(exist_ok=True)
    HOST.write_text(host)
    return 0


if __name__ == "__main__":
    sys.exit(main())
