"""Snakemake as it is, except that it asks SLURM every half second; by itself it asks ever less often, as a real queue wants.

python impatient.py <arguments of snakemake>

With the arguments `UNASKED` of runs.py it asks every five seconds, from the 90th on.
"""

import sys

from snakemake.cli import main
from snakemake_executor_plugin_slurm import Executor

if __name__ == "__main__":
    asked = [
        value for name, value in zip(sys.argv, sys.argv[1:]) if name == "--slurm-init-seconds-before-status-checks"
    ]
    seconds = 0.5 if asked[-1:] == ["1"] else 5.0
    Executor.next_seconds_between_status_checks = property(lambda self: seconds, lambda self, value: None)
    main()
