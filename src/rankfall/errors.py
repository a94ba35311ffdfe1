"""The exception for errors that users see: one line that says what is wrong and what to do about it."""

import difflib
import re
from collections.abc import Iterable
from typing import Any


class RankfallError(Exception):
    """Bad input or a broken environment, found before any work starts. The command line prints it without a traceback."""


class NoKernel(RankfallError):
    """A GPU for which no kernel can be compiled: no cell's fault."""


def nearest(given: Any, allowed: Iterable[str]) -> str | None:
    """The allowed name most similar to the given one, or None."""
    if not isinstance(given, str):
        return None
    lowered = {name.lower(): name for name in allowed}
    found = difflib.get_close_matches(given.lower(), lowered, n=1, cutoff=0.5)
    return lowered[found[0]] if found else None


def suggest(given: Any, allowed: Iterable[str]) -> str:
    """The end of an error: which allowed name may have been meant. Empty where none is similar."""
    near = nearest(given, allowed)
    return f"; did you mean {near!r}?" if near else ""


def describe_error(error: BaseException, longest: int = 200) -> str:
    """An error in one line, without memory addresses of functions and objects, so that it is the same in every run."""
    line = " ".join(re.sub(r" at 0x[0-9a-fA-F]+", "", str(error)).split())
    return f"{type(error).__name__}: {line}"[:longest]
