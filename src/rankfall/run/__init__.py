"""Jobs around the numbers: from a configuration to jobs that run, store and display results. Nothing here computes a number."""
