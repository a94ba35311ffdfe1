"""Fit of the order of a power law to points in logarithms: a slope for each draw of weights, and its spread over draws."""

import math
from collections import Counter
from typing import Any

import numpy as np
from torch import Tensor

SHARP = 0.05  # an order with a larger uncertainty is not reported


def fit(scales: np.ndarray, logs: Tensor, method: str, last: int | None = None) -> dict[str, Any]:
    """Fit slopes of `logs` (K, B) over `scales` (B,), for each draw, and combine them over draws.

    `last`: number of points used, the last ones.
    """
    slopes, errors, starts, decades, identical = [], [], [], [], 0
    for line in logs.numpy():
        kept = np.flatnonzero(np.isfinite(line))[-last:] if last else np.flatnonzero(np.isfinite(line))
        if not len(kept):
            identical += 1
            continue
        if len(kept) < 3:
            continue
        x, y = scales[kept], line[kept]
        centred = x - x.mean()
        slope = float(centred @ y / (centred @ centred))
        left = y - y.mean() - slope * centred
        slopes.append(slope)
        errors.append(math.sqrt(float(left @ left) / (len(x) - 2) / float(centred @ centred)))
        starts.append(float(y.mean() - slope * x.mean()))
        decades.append(float(x.max() - x.min()))
    if not slopes:
        reason = "rows come out identical to the last digit" if identical else "nothing above rounding"
        return leave_order_empty(method, reason, identical)
    scatter = float(np.std(slopes, ddof=1)) if len(slopes) > 1 else 0.0
    order, uncertainty = float(np.mean(slopes)), math.hypot(scatter, float(np.sqrt(np.mean(np.square(errors)))))
    if uncertainty > SHARP:
        found = sorted(Counter(round(slope) for slope in slopes).items())
        reason = "depends on the draw: " + (
            ", ".join(f"{p} in {count}" for p, count in found)
            if len(found) > 1
            else f"{min(slopes):.2f} to {max(slopes):.2f} in {len(slopes)}"
        )
        return leave_order_empty(method, reason, identical) | {"uncertainty": uncertainty}
    return {
        "method": method,
        "identical_draws": identical,
        "order": order,
        "uncertainty": uncertainty,
        "decades": float(np.min(decades)),
        "log10_constant": float(np.median(starts)),
        "reason": "does not contract: rows come out different however similar they went in" if order < 0.5 else "",
    }


def leave_order_empty(method: str, reason: str, identical: int = 0) -> dict[str, Any]:
    """Return a result without an order, with the reason."""
    empty = dict.fromkeys(("order", "uncertainty", "decades", "log10_constant"))
    return {"method": method, "identical_draws": identical, "reason": reason} | empty
