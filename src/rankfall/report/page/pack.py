"""Data as text of a page: compressed JSON in base64, in which values that cells share are stored once."""

import base64
import json
import math
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

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
