"""Trials: every component is tested before its results are used. `kinds.py` lists the tests of each kind.

None of this is part of a key: it computes no results, it only refuses components.
"""
