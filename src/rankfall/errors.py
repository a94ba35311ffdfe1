"""Errors that users see: one line that says what is wrong and how to fix it."""

import difflib
import re
from collections.abc import Iterable
from typing import Any


class RankfallError(Exception):
    """Bad input or a broken environment. The command line prints it without a traceback."""


class NoKernel(RankfallError):
    """A GPU for which no kernel can be compiled, which is not the fault of a cell."""


def nearest(name: Any, allowed: Iterable[str]) -> str | None:
    """Return the allowed name that is most similar to `name`, or None if none is."""
    if not isinstance(name, str):
        return None
    by_lower = {candidate.lower(): candidate for candidate in allowed}
    similar = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[similar[0]] if similar else None


def suggest(name: Any, allowed: Iterable[str]) -> str:
    """Return the end of an error message that suggests a similar allowed name; empty if none is similar."""
    similar = nearest(name, allowed)
    return f"; did you mean {similar!r}?" if similar else ""


def describe_error(error: BaseException, longest: int = 200) -> str:
    """Return an error as one line, without memory addresses, so that it is the same in every run."""
    line = " ".join(re.sub(r" at 0x[0-9a-fA-F]+", "", str(error)).split())
    return f"{type(error).__name__}: {line}"[:longest]
