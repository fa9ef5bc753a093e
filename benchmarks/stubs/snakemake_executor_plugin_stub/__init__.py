"""Cluster executor for Snakemake whose jobs only touch their outputs, for benchmarks/jobs.py."""

from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.settings import CommonSettings

common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_envvar_declarations_to_cmd=True,
    init_seconds_before_status_checks=1,
)


class Executor(RemoteExecutor):
    """Touches a job's outputs at submission and reports its end at the next status check."""

    def run_job(self, job):
        # A cluster executor writes a job's script too.
        self.write_jobscript(job, self.get_jobscript(job))
        for path in job.output:
            path.prepare()
            path.touch_or_create()
        self.report_job_submission(SubmittedJobInfo(job=job, external_jobid=str(job.jobid)))

    async def check_active_jobs(self, active_jobs):
        for job in active_jobs:
            self.report_job_success(job)
        return
        yield

    def cancel_jobs(self, active_jobs):
        """No job is running."""
