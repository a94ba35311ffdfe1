"""What a run is doing now: Snakemake's events, drawn on a terminal or told in lines."""
