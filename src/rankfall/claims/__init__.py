"""What the field has said about depth, each tested by an experiment of its own. A claim is a folder: `claim.py` has its source and the rule
that decides it, `measure.py` the experiment that fills the table `evidence`."""
