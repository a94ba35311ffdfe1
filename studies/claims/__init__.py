"""Claims of the literature about depth, each tested by an experiment."""
