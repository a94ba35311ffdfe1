"""Read the evidence of `trained_bias` for the rules that share it."""

from rankfall import DataFrame, Threshold, band_of, compare, evidence_rows
from studies.claims.trained_bias.names import ENDS, GAP, RIGHT

LEARNED = Threshold(0.5, "above", RIGHT, "networks that count")  # one of eight labels is right by chance
FALLS = Threshold(
    0.0, "below", "change of the gap between neighbouring depths", "without skips at none, with skips at one"
)


def learned_depths(rows: DataFrame, line: str) -> list[float]:
    return [
        x
        for x in sorted(set(evidence_rows(rows, RIGHT, line).x))
        if compare(band_of(rows, RIGHT, line, x), LEARNED) == "above"
    ]


def say_depths(rows: DataFrame, line: str) -> str:
    parts = [
        f"{x:.0f}: {band_of(rows, GAP, line, x)}, to the last item {band_of(rows, ENDS, line, x).mean:.2f}, right "
        f"{band_of(rows, RIGHT, line, x).mean:.0%}"
        for x in sorted(set(evidence_rows(rows, GAP, line).x))
    ]
    return f"Gap of the first to the middle item by layers, {line}: {'; '.join(parts)}."
