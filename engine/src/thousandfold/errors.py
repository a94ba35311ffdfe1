"""The errors of the engine that are not the fault of a single member, and what it says while a user waits."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 2.0  # seconds


class EngineError(Exception):
    """A step that cannot go on: bad input, or an environment in which the engine does not run."""


class NoKernel(EngineError):
    """A GPU for which no kernel can be compiled."""


@contextmanager
def say_if_slow(message: str) -> Iterator[None]:
    """Say on stderr what is going on if it takes more than two seconds."""
    timer = threading.Timer(PATIENCE, lambda: print(f"thousandfold: {message}", file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
