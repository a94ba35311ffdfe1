"""Results of each cell at the end of its training."""
