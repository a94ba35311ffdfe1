"""The interface to Snakemake and SLURM: rules' inputs and params, time and memory, and the state of a run."""
