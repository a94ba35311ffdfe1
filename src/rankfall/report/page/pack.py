"""Data as text of a page: compressed JSON in base64, in which values that cells share are stored once."""

import base64
import functools
import hashlib
import json
import math
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rankfall.caches import use
from rankfall.disk import atomic, cache_home, describe_non_file
from rankfall.errors import RankfallError

SEED = "@seed@"


def pack(value: Any) -> str:
    """Encode a value for the function `unpacked` of the page's script."""
    return compress(json.dumps(value, separators=(",", ":"), allow_nan=False))


def compress(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode()


def unpack(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text)))


def share_values(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Encode the provenance of cells with each different value of a field stored once. Snippets differ between seeds only in the seed."""
    fields: list[str] = []
    values: dict[str, list[Any]] = {}
    places: dict[str, dict[str, int]] = {}
    cells: dict[str, list[int]] = {}
    for record in records:
        about = {name: value for name, value in record.items() if name != "key"}
        fields = fields or list(about)
        row = []
        for name in fields:
            value = finite(about[name])
            text = json.dumps(value, sort_keys=True)
            known = places.setdefault(name, {})
            if text not in known:
                known[text] = len(known)
                values.setdefault(name, []).append(value)
            row.append(known[text])
        cells[record["key"]] = row
    return {"fields": fields, "values": values, "cells": cells}


def finite(value: Any) -> Any:
    """Replace NaN and infinities, which JSON lacks, by texts."""
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


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
