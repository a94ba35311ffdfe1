"""Snakemake as it is, except that it asks SLURM every half second; by itself it asks ever less often, as a real queue wants.

python impatient.py <arguments of snakemake>
"""

from snakemake.cli import main
from snakemake_executor_plugin_slurm import Executor

if __name__ == "__main__":
    Executor.next_seconds_between_status_checks = property(lambda self: 0.5, lambda self, value: None)
    main()
