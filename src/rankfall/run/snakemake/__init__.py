"""The interface to Snakemake and SLURM: inputs and params of rules, time and memory of jobs, and the state of a run."""
