"""Vega-Lite and what it needs, as one script: put together once for a version, which takes two seconds, and kept in the user's cache."""

import functools
import hashlib
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from rankfall.caches import use
from rankfall.disk import atomic, cache_home, describe_non_file
from rankfall.errors import RankfallError


@functools.cache
def bundle() -> str:
    import vl_convert

    place = script_place(version("vl-convert-python"))
    known = place and read_whole(place)
    if place and known:
        use(place)
        return known
    text = str(vl_convert.javascript_bundle())  # type: ignore[call-arg]
    if place:
        with suppress(RankfallError), atomic(place) as file:  # where nothing can be kept, it is put together each time
            file.write(seal(text))
    return text


def script_place(of: str) -> Path | None:
    """Where the script of a version is kept; None where there is no home folder."""
    home = cache_home()
    return home / "vega" / f"{of}.js" if home else None


def seal(text: str) -> bytes:
    """The script after a line with its digest, without which, or with another, it is not used."""
    content = text.encode()
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def read_whole(place: Path) -> str:
    """The script that is kept there, empty where there is none or it was changed."""
    with suppress(OSError):
        if describe_non_file(place) is None:
            content = place.read_bytes()
            text = content.partition(b"\n")[2].decode(errors="replace")
            return text if seal(text) == content else ""
    return ""
