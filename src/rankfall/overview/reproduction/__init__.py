"""The comparison of every published number with the result of this run."""
