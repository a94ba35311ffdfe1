"""Vega-Lite with its dependencies as one script. Bundling takes two seconds, so the script of each version is kept in the user's cache."""

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
        with suppress(RankfallError), atomic(place) as file:  # without a writable cache it is bundled each time
            file.write(seal(text))
    return text


def script_place(of: str) -> Path | None:
    """Return the cached file of a version's script; None if there is no home folder."""
    home = cache_home()
    return home / "vega" / f"{of}.js" if home else None


def seal(text: str) -> bytes:
    """Return the script after a line with its digest. A cached file whose digest is missing or wrong is not used."""
    content = text.encode()
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def read_whole(place: Path) -> str:
    """Read the script of a cached file; empty if there is none or it was changed."""
    with suppress(OSError):
        if describe_non_file(place) is None:
            content = place.read_bytes()
            text = content.partition(b"\n")[2].decode(errors="replace")
            return text if seal(text) == content else ""
    return ""
