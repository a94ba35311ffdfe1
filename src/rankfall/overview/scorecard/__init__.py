"""The scorecard: the headline numbers of all studies in one table."""
