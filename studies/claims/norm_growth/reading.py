"""Read the evidence of `norm_growth` for the rules that share it."""

import math
from typing import Any

from rankfall import Band, band, evidence_rows
from studies.claims.norm_growth.names import ADDED, STARTS
from studies.claims.parts import slope

NEAR = 0.15  # of a power
MORE = "more seeds or layers"


def added_by_seed(rows: Any, line: str) -> list[dict[int, float]]:
    """Return, by seed, the mean square of what layers have added to the input, by layer."""
    return [
        dict(zip(group.x.astype(int), group.value, strict=True))
        for _, group in evidence_rows(rows, ADDED, line).groupby("seed")
    ]


def power(rows: Any, line: str) -> Band:
    """Return p such that the mean square of what is added grows like l^p over the last three octaves."""

    def power_of_seed(added: dict[int, float]) -> float:
        last = max(added)
        late = [layer for layer in added if layer >= last / 8]
        return slope([math.log(layer) for layer in late], [math.log(added[layer]) for layer in late])

    return band(power_of_seed(added) for added in added_by_seed(rows, line))


def others(rows: Any) -> list[str]:
    """Return the lines of networks that the sources do not have."""
    return [line for line in sorted(evidence_rows(rows, ADDED).line.unique()) if line not in STARTS]
