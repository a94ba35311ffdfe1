"""Claims of the literature about depth, each tested by an experiment.

A claim is a folder: `statement.yaml` says who claims what, `experiment.py` measures rows of the table `evidence`, and `rule.py` decides.
Claims may share an experiment. `names.py` has the names that an experiment and its rules share. It is a file of its own so that an edit of
a rule measures nothing again, and so that a rule loads no torch. `reading.py` has what several rules of one experiment share.
"""
