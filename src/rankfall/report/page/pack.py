"""Data as text of a page: compressed JSON in base64, in which values that cells share are stored once."""

import base64
import functools
import json
import math
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.metadata import version
from typing import Any

from rankfall.caches import use
from rankfall.disk import atomic, cache_home
from rankfall.errors import RankfallError

SEED = "@seed@"


def pack(value: Any) -> str:
    """Encode a value for the function `unpacked` of the page's script."""
    return compress(json.dumps(value, separators=(",", ":"), allow_nan=False))


def compress(text: str) -> str:
    """Compress a text and encode it in base64."""
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode()


def unpack(text: str) -> Any:
    """Decode the text of `pack`."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


def share_values(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Encode the provenance of cells with each different value of a field stored once. Snippets differ between seeds only in the seed."""
    places: dict[str, dict[str, int]] = {}  # field -> text of a value -> its index in the list of values
    cells = {}
    for record in records:
        texts = {name: json.dumps(finite(value)) for name, value in record.items() if name != "key"}
        pairs = [(places.setdefault(name, {}), text) for name, text in texts.items()]
        cells[record["key"]] = [indices.setdefault(text, len(indices)) for indices, text in pairs]
    values = {name: [json.loads(text) for text in indices] for name, indices in places.items()}
    return {"fields": list(places), "values": values, "cells": cells}


def finite(value: Any) -> Any:
    """Replace NaN and infinities, which JSON lacks, by texts."""
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


@functools.cache
def bundle() -> str:
    """Return the library of charts as JavaScript. Bundling takes two seconds, so the text is cached by version if a cache is writable."""
    import vl_convert

    home = cache_home()
    place = home / "vega" / f"library-{version('vl-convert-python')}.js" if home else None
    if place and place.is_file():
        use(place)
        return place.read_text("utf-8")
    text = str(vl_convert.javascript_bundle())  # type: ignore[call-arg]
    if place:
        with suppress(RankfallError), atomic(place) as file:
            file.write(text.encode())
    return text
