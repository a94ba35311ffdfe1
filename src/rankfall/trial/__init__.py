"""Try a component before its numbers count: shapes, finite numbers and gradients, and independence of members and samples.

`kinds.py` lists the checks of each kind; `rankfall.testing.check_component` is the public form. No key contains any of this: it computes
no results, it only refuses components.
"""
