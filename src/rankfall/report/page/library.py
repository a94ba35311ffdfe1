"""Vega-Lite and what it needs, as one script: put together once for a version, which takes two seconds, and kept in the user's cache."""

import functools
import os
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from rankfall.disk import atomic
from rankfall.errors import RankfallError

LAST = "\n/* complete */\n"  # a file that does not end like this is not used


@functools.cache
def bundle() -> str:
    import vl_convert

    place = kept(version("vl-convert-python"))
    with suppress(OSError, UnicodeDecodeError):
        text = place.read_text(encoding="utf-8") if place else ""
        if text.endswith(LAST):
            return text
    text = str(vl_convert.javascript_bundle()) + LAST  # type: ignore[call-arg]
    if place:
        with suppress(RankfallError), atomic(place) as file:  # where nothing can be kept, it is put together each time
            file.write(text.encode())
    return text


def kept(of: str) -> Path | None:
    """Where the script of a version is kept; None where there is no home folder."""
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return home / "rankfall" / "vega" / f"{of}.js"
