"""Claims of the literature about depth, each tested by an experiment. A claim is a folder: `claim.py` has its source and the rule that
decides it, and `measure.py` the experiment that fills the table `evidence`."""
