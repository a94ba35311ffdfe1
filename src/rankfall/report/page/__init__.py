"""The page of a run: one HTML file that opens from disk, loads nothing, and contains the run's numbers."""
