"""Snakemake's scheduler has one pending timer at most, and keeps its rate limit."""

import os
import threading
import time
from types import SimpleNamespace

import psutil
from tests.workflow.running import snakemake

from rarepapers.rule_inputs.scheduler_timers import keep_one_timer

JOBS = 40
# The reproduction of docs/snakemake_timers.md, with and without what this project does about it.
SNAKEFILE = """
import sys
sys.path.insert(0, {package!r})
from rarepapers.rule_inputs.scheduler_timers import keep_one_timer

rule all:
    input: expand("out/{{n}}.txt", n=range({jobs}))

rule one:
    output: "out/{{n}}.txt"
    shell: "sleep 0.05; touch {{output}}"

onstart:
    {onstart}
"""


def most_threads(folder, onstart, *arguments):
    """The maximum number of threads of a Snakemake that runs the bug report's reproduction."""
    package = os.path.join(os.path.dirname(__file__), "..", "..", "workflow")
    folder.mkdir()
    (folder / "Snakefile").write_text(SNAKEFILE.format(package=os.path.abspath(package), jobs=JOBS, onstart=onstart))
    process, most = snakemake(folder, "--cores", 1, "--quiet", "all", *arguments, background=True), 0
    threads = psutil.Process(process.pid).num_threads
    while process.poll() is None:
        try:
            most = max(most, threads())
        except psutil.Error:
            break
        time.sleep(0.01)
    assert process.wait() == 0, process.stdout.read()
    assert len(list((folder / "out").iterdir())) == JOBS
    return most


def test_a_running_workflow_has_few_threads(tmp_path):
    # The main thread, one that waits for the job, and a timer.
    assert most_threads(tmp_path / "with", "keep_one_timer(workflow.scheduler)") <= 3


def test_snakemake_still_needs_the_patch(tmp_path):
    """If this fails, Snakemake has fixed its timers: remove scheduler_timers.py and docs/snakemake_timers.md."""
    assert most_threads(tmp_path / "without", "pass") > 6


def test_the_workflow_uses_the_patch(project):
    text = (project / "Snakefile").read_text()
    assert "keep_one_timer(workflow.scheduler)" in text.partition("onstart:")[2]


def test_a_workflow_above_the_rate_limit_continues(tmp_path):
    began = time.monotonic()
    most = most_threads(tmp_path / "limited", "keep_one_timer(workflow.scheduler)", "--max-jobs-per-timespan", "10/2s")
    # 10 jobs at once, then 10 every two seconds.
    assert time.monotonic() - began > 6
    assert most <= 4


class Limiter:
    """A rate limiter with so many free jobs."""

    timespan = 0.05
    free = 0

    def get_free_jobs(self):
        return self.free


def test_one_timer_is_pending_while_the_limit_holds_jobs_back():
    limiter, passes = Limiter(), threading.Semaphore(0)
    scheduler = SimpleNamespace(job_rate_limiter=limiter, _schedule_reevalutation=None, _open_jobs=passes)
    keep_one_timer(scheduler)
    before = threading.active_count()
    for _ in range(5):
        scheduler._schedule_reevalutation(limiter.timespan)
    assert threading.active_count() == before + 1
    assert passes.acquire(timeout=5)
    assert not passes.acquire(timeout=0.2)
    scheduler._schedule_reevalutation(limiter.timespan)
    assert passes.acquire(timeout=5)
    limiter.free = 1
    scheduler._schedule_reevalutation(limiter.timespan)
    assert not passes.acquire(timeout=0.2)
    # Another wait, such as for a queue of inputs.
    scheduler._schedule_reevalutation(0.01)
    assert passes.acquire(timeout=5)


def test_a_snakemake_without_these_parts_is_not_patched():
    scheduler = SimpleNamespace()
    keep_one_timer(scheduler)
    assert vars(scheduler) == {}
