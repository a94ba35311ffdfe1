"""Trials: a component of anyone's is tried before its numbers count. One table says how each kind is tried (`kinds.py`).

None of this is part of a key: it computes no number, it only refuses.
"""
