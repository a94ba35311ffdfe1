"""Rows of the table `evidence`, which the experiments of claims fill."""

import math
from typing import Any


def evidence_row(
    claim: str, quantity: str, line: str, x: float, seed: int, value: float, reason: str = ""
) -> dict[str, Any]:
    """Return one row. `quantity` is "what, by what": the vertical axis, and the meaning of `x`. A value that is not finite becomes null,
    with a reason."""
    number = float(value)
    known = math.isfinite(number)
    return {
        "claim": claim,
        "quantity": quantity,
        "line": line,
        "x": float(x),
        "seed": int(seed),
        "value": number if known else None,
        "value_reason": None if known else reason or f"the value is {number}",
    }
