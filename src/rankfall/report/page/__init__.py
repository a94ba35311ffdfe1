"""The page of a run: one HTML file that opens from disk, loads nothing, and has the run's numbers in it."""
