"""Another file of the author of `mylab_state.py`."""

CALLS = 0
