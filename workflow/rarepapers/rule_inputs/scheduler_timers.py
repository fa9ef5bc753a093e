"""Limit of one pending timer in Snakemake's scheduler; the only module that touches private parts of Snakemake.

In Snakemake 9.27.1 every pass of the scheduling loop starts a timer that starts another pass a second later
(`JobScheduler._schedule_reevalutation`, for --max-jobs-per-timespan, by default 100 per second). Passes started by
finished jobs come on top, so the timers accumulate: after n jobs there are about n passes and n threads per second, and
each pass looks at every file of every ready job. docs/snakemake_timers.md is the report to Snakemake, with a patch;
tests/workflow/test_timers.py fails once Snakemake no longer needs this module.
"""

import threading


def keep_one_timer(scheduler) -> None:
    """Limit `scheduler` (snakemake.scheduling.job_scheduler.JobScheduler) to one pending timer.

    A timer is started only while the rate limit holds jobs back, so that the limit stays in force. All other waiting
    ends when another job ends, which itself starts a pass. No-op if Snakemake lacks these attributes.
    """
    limiter = getattr(scheduler, "job_rate_limiter", None)
    if limiter is None or not hasattr(scheduler, "_schedule_reevalutation"):
        return
    lock, pending = threading.Lock(), []

    def expire() -> None:
        with lock:
            pending.clear()
        scheduler._open_jobs.release()

    def schedule(delay: float) -> None:
        is_for_the_limit = delay == limiter.timespan
        with lock:
            if pending or (is_for_the_limit and limiter.get_free_jobs() > 0):
                return
            timer = threading.Timer(delay, expire)
            timer.daemon = True
            pending.append(timer)
        timer.start()

    scheduler._schedule_reevalutation = schedule
