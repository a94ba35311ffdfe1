"""Runs each job as Kubernetes does, on this machine: in a new empty folder, where the folder of the run and its home cannot be seen."""

import os
import signal
import subprocess
import tempfile
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface
from snakemake_interface_executor_plugins.settings import CommonSettings

FOLDERS = "RANKFALL_TEST_FOLDERS"  # environment variable: where the folders of jobs are
SEEN = ("PATH", "LANG", "OMP_NUM_THREADS")  # environment variables that a job has from here

# Those of snakemake-executor-plugin-kubernetes, except that nothing is installed by pip.
common_settings = CommonSettings(
    non_local_exec=True, implies_no_shared_fs=True, job_deploy_sources=True, pass_default_storage_provider_args=True,
    pass_default_resources_args=True, pass_envvar_declarations_to_cmd=False, auto_deploy_default_storage_provider=False,
)  # fmt: skip


class Executor(RemoteExecutor):
    def run_job(self, job: JobExecutorInterface) -> None:
        folder = Path(tempfile.mkdtemp(prefix=f"{job.rule.name}.", dir=os.environ[FOLDERS]))
        seen = {name: os.environ[name] for name in SEEN if name in os.environ}
        alone = 'mount -t tmpfs none "$1" && cd "$2" && exec sh -c "$3"'
        with folder.with_suffix(folder.suffix + ".out").open("wb") as out:
            process = subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", alone, "job", os.getcwd(), str(folder), self.format_job_exec(job)],
                env=seen | self.envvars() | {"HOME": str(folder)}, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self.report_job_submission(SubmittedJobInfo(job, external_jobid=str(process.pid), aux={"process": process}))

    async def check_active_jobs(self, active_jobs: list[SubmittedJobInfo]) -> AsyncGenerator[SubmittedJobInfo, None]:
        for info in active_jobs:
            code = info.aux["process"].poll()
            if code is None:
                yield info
            elif code:
                self.report_job_error(info)
            else:
                self.report_job_success(info)

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:
        for info in active_jobs:
            with suppress(ProcessLookupError):
                os.killpg(info.aux["process"].pid, signal.SIGTERM)
