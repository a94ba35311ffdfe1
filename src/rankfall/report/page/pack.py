"""Data as text of a page: JSON, compressed, base64; and what many cells share, once."""

import base64
import json
import math
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

SEED = "@seed@"


def pack(value: Any) -> str:
    """For the script's `unpacked`."""
    return compress(json.dumps(value, separators=(",", ":"), allow_nan=False))


def compress(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode()


def unpack(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(text)))


def share_values(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Provenance of cells: every different value of a field once. A snippet differs between seeds in the seed alone."""
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
    """Plain data with what JSON lacks as text."""
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
