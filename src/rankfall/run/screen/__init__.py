"""Display a running workflow: Snakemake's events, drawn on a terminal or printed in lines."""
