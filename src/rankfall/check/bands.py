"""Reference bands: what residual known architectures of a depth and kind have at birth, from a table that ships with the package.

`python -m benchmarks.bands` makes the table (`bands.json`) from architectures of the transformers library at small width and of our
own, with random tokens. A band is from the smallest to the largest mean over samples among architectures and seeds.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from rankfall.models.modules.flow import Flow

TABLE = Path(__file__).with_name("bands.json")
CAUSAL, BOTH = "one way", "both ways"


def kind_of(flow: Flow) -> str:
    """Direction, mixer and place of the norm, as the table has them."""
    mixers = [branch.number for branch in flow.branches if branch.mixes]
    with_weights = set(flow.attends.values())
    weighed = [number in with_weights for number in mixers]
    mixer = "attention" if mixers and all(weighed) else "hybrid" if any(weighed) else "mixing without weights"
    return f"{CAUSAL if flow.causal else BOTH}, {mixer}, {'post' if flow.post else 'pre'}-norm"


@cache
def table() -> dict[str, Any]:
    """bands: kind -> depth -> {low, high, of}; made: with what."""
    found: dict[str, Any] = json.loads(TABLE.read_text())
    return found


def band_for(flow: Flow) -> tuple[tuple[float, float], str] | None:
    """(low, high) of the last layer's residual at the nearest depth, and of what; None where nothing of this kind is known."""
    by_depth = table()["bands"].get(kind_of(flow), {})
    if not by_depth or not flow.skips:
        return None
    depth = min(by_depth, key=lambda one: (abs(int(one) - flow.depth), int(one)))
    if not 0.5 <= int(depth) / flow.depth <= 2:
        return None
    found = by_depth[depth]
    names = found["of"]
    of = ", ".join(names) if len(names) < 3 else f"{len(names)} architectures of this kind"
    return (found["low"], found["high"]), f"{of} with {depth} layers"
