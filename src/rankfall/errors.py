"""Errors that users see: one line that says what is wrong and how to fix it."""

import difflib
import os
import re
import traceback
from collections.abc import Iterable
from typing import Any

PACKAGE = os.path.dirname(__file__)


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
    """Return an error as one line, without memory addresses, so that it is the same in every run. This package's errors stay whole, since
    they end with their fix, and a syntax error has the line of code."""
    line = " ".join(re.sub(r" at 0x[0-9a-fA-F]+", "", str(error)).split())
    if isinstance(error, SyntaxError) and error.text:
        line = f"{line}: {error.text.strip()}"
    return f"{type(error).__name__}: {line}"[: None if isinstance(error, RankfallError) else longest]


def frames_of_users(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of an error that are in files of the working directory, outside of this package and of installed ones."""
    here = os.getcwd() + os.sep
    frames = traceback.extract_tb(error.__traceback__)
    return [
        frame
        for frame in frames
        if frame.filename.startswith(here)
        and not frame.filename.startswith(PACKAGE + os.sep)
        and "site-packages" not in frame.filename
    ]
