"""Reference bands: the residual of known architectures by depth, kind and layer, from a table that ships with the package.

`python -m benchmarks.bands` computes the table (`bands.json`). At birth: small-width architectures of the transformers library and
Rankfall's own, with random tokens. After training: small networks of Rankfall, trained by workflow/presets/bands.yaml, and a pretrained
MiniLM. A band runs from the smallest to the largest mean over samples among networks and seeds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rankfall.streams.flow import Flow

TABLE = Path(__file__).with_name("bands.json")
CAUSAL, BOTH = "one way", "both ways"
BIRTH, TRAINED = "at birth", "after training"
KINDS = {BIRTH: "architecture", TRAINED: "small trained network"}


def kind_of(flow: Flow, normed: bool = True) -> str:
    """Return the key of the table for a stream: direction, mixer (attention: a softmax over tokens) and position of the norm.

    All networks of the table are `normed`.
    """
    mixer = "mixing without softmax" if flow.mixer == "none" else flow.mixer
    norm = f"{'post' if flow.post else 'pre'}-norm" if normed else "no norm on the stream"
    return f"{CAUSAL if flow.causal else BOTH}, {mixer}, {norm}"


def say_kind(flow: Flow, normed: bool) -> str:
    """Return the kind for a report. Without residual additions the position of norms is unknown and left out.

    A token that changes only earlier ones, as with a mask of the wrong sense, is said to look backwards; the table has no such kind.
    """
    kind = kind_of(flow, normed) if flow.skips else kind_of(flow).rpartition(", ")[0]
    mixers = [branch for branch in flow.branches if branch.mixes]
    reverse = any(branch.backwards for branch in mixers) and not any(branch.forwards for branch in mixers)
    return kind.replace(BOTH, f"{CAUSAL}, backwards", 1) if reverse else kind


@dataclass(frozen=True)
class ReferenceBand:
    """Smallest and largest residual of each layer, from layer 0, among networks of about the same depth."""

    when: str
    depth: int  # of the networks of the table
    low: tuple[float, ...]
    high: tuple[float, ...]
    of: str
    alone: bool = False  # the band of a single network, which `of` names

    def at(self, layer: int, depth: int) -> tuple[float, float]:
        """Return the band at a layer of a network of another depth, interpolated at the same relative depth."""
        place = layer / depth * self.depth
        before = min(int(place), self.depth - 1)
        share = place - before
        low, high = ((1 - share) * side[before] + share * side[before + 1] for side in (self.low, self.high))
        return low, high


@cache
def table() -> dict[str, Any]:
    """Return the table. Its bands: when -> kind -> depth -> {low, high: by layer, of: names}."""
    found: dict[str, Any] = json.loads(TABLE.read_text())
    return found


def bands_for(flow: Flow, normed: bool = True) -> list[ReferenceBand]:
    """Return the bands at birth and after training, at the nearest depth, as far as the table has them."""
    return bands_of([kind_of(flow, normed)], flow.depth) if flow.skips else []


def bands_of(kinds: list[str], depth: int) -> list[ReferenceBand]:
    """Return the bands at birth and after training, each over all of these kinds."""
    found = [one_band(when, kinds, depth) for when in (BIRTH, TRAINED)]
    return [one for one in found if one is not None]


def one_band(when: str, kinds: list[str], depth: int) -> ReferenceBand | None:
    """Return the band over all entries at the nearest depth within a factor of two, or None if there is none."""
    known = [by_depth for kind in kinds if (by_depth := table()["bands"].get(when, {}).get(kind))]
    depths = {int(one) for by_depth in known for one in by_depth if 0.5 <= int(one) / depth <= 2}
    if not depths:
        return None
    nearest = min(depths, key=lambda one: (abs(one - depth), one))
    entries = [by_depth[str(nearest)] for by_depth in known if str(nearest) in by_depth]
    names = sorted({name for entry in entries for name in entry["of"]})
    named = len(names) < 3 and when == BIRTH
    several = f"{len(names)} {KINDS[when]}{'s' * (len(names) > 1)} of this kind"
    of = " and ".join(names) if named else several
    low = tuple(map(min, zip(*(entry["low"] for entry in entries))))
    high = tuple(map(max, zip(*(entry["high"] for entry in entries))))
    return ReferenceBand(when, nearest, low, high, f"{of} with {nearest} layers", named and len(names) == 1)


def no_band(flow: Flow, normed: bool = True) -> str:
    """Return why there is no band at birth, or '' if there is one."""
    if not flow.skips:
        return "bands are of networks with residual additions"
    kind = kind_of(flow, normed)
    known = table()["bands"].get(BIRTH, {}).get(kind)
    if not known:
        return f"the table has no network of this kind: {kind}"
    if not any(0.5 <= int(one) / flow.depth <= 2 for one in known):
        return f"the table has networks of {', '.join(known)} layers, none near {flow.depth}"
    return ""
