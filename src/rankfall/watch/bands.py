"""The reference bands of a watched run, by direction of attention and depth.

Hooks do not show the position of norms, so a band covers pre-norm and post-norm networks alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankfall.check.bands import BOTH, CAUSAL, ReferenceBand, bands_of

if TYPE_CHECKING:
    from pandas import DataFrame

WAYS = {"causal": [CAUSAL], "bidirectional": [BOTH]}


def bands_of_run(rows: DataFrame) -> tuple[list[ReferenceBand], str]:
    """Return the bands at birth and after training, and a caption that names their networks or says why there are no bands."""
    depth = int(rows.layer.max())
    masks = set(rows["mask"])
    ways = WAYS.get(masks.pop()) if len(masks) == 1 else None
    if ways is None:
        return [], "no band: the direction of attention is not known, by which networks are compared"
    bands = bands_of([f"{way}, attention, {norm}-norm" for way in ways for norm in ("pre", "post")], depth)
    if not bands:
        return [], f"no band: the table has no networks of about {depth} layers"
    return bands, "; ".join(f"{band.when}, of {band.of}" for band in bands)
