"""Snakemake as it is, except that it asks SLURM every half second; by itself it asks ever less often, as a real queue wants.

python impatient.py <arguments of snakemake>

With the arguments `UNASKED` of runs.py it asks nothing.
"""

import asyncio
import sys
from typing import Any

from snakemake.cli import main
from snakemake_executor_plugin_slurm import Executor


async def wait_for_the_end(executor: Any) -> None:
    while executor.wait:
        await asyncio.sleep(0.1)


if __name__ == "__main__":
    pairs = zip(sys.argv, sys.argv[1:])
    *_, seconds = (value for name, value in pairs if name == "--slurm-init-seconds-before-status-checks")
    Executor.next_seconds_between_status_checks = property(lambda self: 0.5, lambda self, value: None)
    if seconds != "1":
        Executor._wait_for_jobs = wait_for_the_end
    main()
