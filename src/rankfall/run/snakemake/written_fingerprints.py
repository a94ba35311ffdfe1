"""The fingerprints of a job that has not planned all cells: those that tables are combined from are taken from the run's plan.

That they are the right ones the job finds out by its own digest, which is made of them.
"""

from functools import partial

from rankfall.run.plan.build import Plan
from rankfall.run.plan.written import WrittenPlan
from rankfall.run.snakemake.job_fingerprints import JobFingerprint, JobFingerprints, Part
from rankfall.run.snakemake.lookups import ShardJob
from rankfall.run.snakemake.outputs import Outputs


class WrittenFingerprints(JobFingerprints):
    """Of a plan that holds some of the cells."""

    def __init__(self, plan: Plan, written: WrittenPlan) -> None:
        super().__init__(plan)
        self.written = written

    def parts(self, table: str, outputs: Outputs) -> list[Part]:
        parts = []
        for path, what, made, job in self.written.about["parts"][table]:
            of = None if job is None else ShardJob(*job)
            keys = None if of is None else partial(self._keys, of)
            parts.append(Part(outputs.folder + path, table, JobFingerprint(what, made, dict), of, keys))
        return parts

    def _keys(self, job: ShardJob) -> list[str]:
        return self.written.shard(*job.place).keys_of(job.measure)
