"""Read the evidence of `score_scales` for the rules that share it."""

from typing import Any

from rankfall import Threshold, evidence_rows

CLOSE = Threshold(0.05, "below", "distance from the limit", "of every cosine, at the most tokens")


def measured_lines(rows: Any, quantity: str) -> list[str]:
    return sorted(name for name in evidence_rows(rows, quantity).line.unique() if not name.startswith("limit"))


def parse_rho(line_name: str) -> float:
    return float(line_name.split(",")[0].removeprefix("rho "))
