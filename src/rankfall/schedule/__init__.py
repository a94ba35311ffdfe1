"""What Snakemake and SLURM are told: rules' inputs and params, time and memory, and what a run has come to."""
