"""Tries a component before its numbers count: shapes, finite numbers and gradients, and that members and samples are independent.

`kinds.py` lists what is tried of each kind; `rankfall.testing.check_component` is the public form. None of this is part of a key: it
computes no results, it only refuses components.
"""
