"""Snakemake logger plugin `--logger raretok`: one line per finished job, and the failed jobs at the end.

Snakemake's complete log is in .snakemake/log. A dry run and --verbose print it instead.
"""

import re
import sys
import time
from collections import Counter, defaultdict
from logging import ERROR, INFO, LogRecord, getLevelName, makeLogRecord
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

# A user's mistake that an input function found, among wildcards and a stack trace.
MISTAKE = re.compile(r"^InputFunctionException .*?\n +UserError: (.*?)\nWildcards:", flags=re.DOTALL)
# Messages of Snakemake: after Ctrl-C, and of --report.
STOPPING = "Terminating processes on user request"
UNFINISHED = "marked for report but does not exist"
# Number of lines shown of a failed job's log.
LAST_LINES = 20

# Events replaced by the line per job, and messages without information for the user.
REPLACED = {LogEvent.WORKFLOW_STARTED, LogEvent.JOB_STARTED, LogEvent.PROGRESS, LogEvent.RESOURCES_INFO}
UNTOLD = (
    "Assuming unrestricted shared filesystem",
    "Conda environments: ignored",
    "Missing metadata for file",  # of results from another machine
    "Provided cores:",
    "Provided resources:",
    "Rules claiming more threads",
    "RuleException:\nCalledProcessError",  # the whole command; what failed follows with the end of its log
    "Select jobs to execute",
    "Singularity containers: ignored",
    "Using shell:",
    "WorkflowError:\nAt least one job did not complete successfully",
)


class LogHandler(LogHandlerBase):
    """Handler of Snakemake's messages on stderr; see the logger plugins on https://snakemake.github.io."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = False
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        # Snakemake imports this module before its own logging is complete.
        from snakemake.logging import ColorizingTextHandler

        settings = self.common_settings
        self.plain = ColorizingTextHandler(settings.nocolor, sys.stdout if settings.stdout else sys.stderr)
        self.in_full = settings.dryrun or settings.verbose or settings.debug_dag or settings.printshellcmds
        self.progress = Progress()
        self.failed: dict[int, str] = {}
        self.is_stopping = False

    def setFormatter(self, fmt) -> None:
        """Set Snakemake's formatter for messages that are printed unchanged."""
        super().setFormatter(fmt)
        self.plain.setFormatter(fmt)

    def emit(self, record: LogRecord) -> None:
        """Print the part of a Snakemake message that concerns the user."""
        event = getattr(record, "event", None)
        text = str(record.msg)
        mistake = MISTAKE.search(text)
        self.is_stopping |= text.startswith(STOPPING)
        if mistake:
            self.say(mistake[1], ERROR)
        elif UNFINISHED in text:
            self.say(
                f"{text.splitlines()[-1].rstrip('.')}; --report is for a finished workflow, so run it first", ERROR
            )
        elif self.in_full:
            self.plain.emit(record)
        elif event == LogEvent.RUN_INFO:
            self.say(self.progress.begin(record.stats))
        elif event == LogEvent.JOB_INFO:
            self.progress.start(record)
        elif event == LogEvent.JOB_FINISHED:
            self.failed.pop(record.job_id, None)
            self.say(self.progress.finish(record.job_id, record.created))
        elif event == LogEvent.JOB_ERROR:
            name = f"{self.progress.name_of(record.jobid)}  {' '.join(record.log)}"
            shown = [f"    {line}" for line in last_lines(record.log)]
            self.failed[record.jobid] = "\n".join([name, *shown[-1:]])
            if not self.is_stopping:  # else it follows at the end, with all others
                self.say("\n".join([f"failed: {name}", *shown]), ERROR)
        elif event not in REPLACED and not text.startswith(UNTOLD):
            self.plain.emit(record)

    def say(self, text: str, level: int = INFO) -> None:
        """Print a message of our own in the colour of its level."""
        words = {"msg": text, "levelno": level, "levelname": getLevelName(level), "event": "line"}
        self.plain.emit(makeLogRecord(words))

    def close(self) -> None:
        """Print the jobs that failed in their last attempt."""
        if self.failed:
            count = "1 job" if len(self.failed) == 1 else f"{len(self.failed)} jobs"
            what = "stopped" if self.is_stopping else "failed"
            self.say("\n".join([f"{count} {what}:", *self.failed.values()]), ERROR)
            self.failed = {}
        super().close()


class Progress:
    """Number of finished jobs, and an estimate of the remaining time."""

    def __init__(self):
        self.started = time.time()
        self.left: Counter[str] = Counter()
        self.done = self.total = 0
        # For started jobs: rule, name and start time; and for each rule the seconds of its finished jobs.
        self.jobs: dict[int, tuple[str, str, float]] = {}
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)

    def begin(self, stats: dict[str, int]) -> str:
        """Count the jobs to do (`stats` by rule); returns a line with the numbers."""
        self.left = Counter({rule: count for rule, count in stats.items() if rule != "total"})
        self.total, self.done = self.left.total(), 0
        return f"{self.total} jobs: " + ", ".join(f"{count} {rule}" for rule, count in self.left.most_common())

    def start(self, job: LogRecord) -> None:
        """Record that a job was started or submitted."""
        name = f"{job.rule_name} {'/'.join(map(str, (job.wildcards or {}).values()))}".rstrip()
        self.jobs[job.jobid] = (job.rule_name, name, job.created)

    def name_of(self, job: int) -> str:
        """The rule and wildcards of a job."""
        return self.jobs[job][1] if job in self.jobs else f"job {job}"

    def finish(self, job: int, now: float) -> str:
        """Record that a job has finished; returns its line."""
        rule, name, since = self.jobs.get(job, ("", self.name_of(job), now))
        self.seconds[rule].append(now - since)
        self.left[rule] -= 1
        self.done += 1
        clock = time.strftime("%H:%M:%S", time.localtime(now))
        words = f"{clock}  {self.done:{len(str(self.total))}} of {self.total}  {name}  {in_words(now - since)}"
        left = self.seconds_left(now)
        return words if left is None else f"{words}  about {in_words(left)} left"

    def seconds_left(self, now: float) -> float | None:
        """Estimated remaining seconds, with mean times per rule and the parallelism so far.

        None if more than half of the remaining jobs are of rules without a finished job.
        """
        rest = +self.left
        known = {rule: count for rule, count in rest.items() if self.seconds[rule]}
        if not rest or 2 * sum(known.values()) < rest.total() or now <= self.started:
            return None
        work = sum(count * sum(self.seconds[rule]) / len(self.seconds[rule]) for rule, count in known.items())
        at_once = max(1.0, sum(map(sum, self.seconds.values())) / (now - self.started))
        return work / at_once * rest.total() / sum(known.values())


def in_words(seconds: float) -> str:
    """12 s, 4 min, 2.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def last_lines(logs: list[str]) -> list[str]:
    """The end of the logs of a failed job."""
    texts = (Path(log).read_text(errors="replace") for log in logs if Path(log).is_file())
    return [line for text in texts for line in text.splitlines()[-LAST_LINES:]]
