"""Published residuals by layer of real models, point by point, as numbers that ours are compared with."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rankfall.report.published_numbers import PAPER

MODELS = {"BERT": "bert-base-cased", "ALBERT": "albert-base-v2", "XLNet": "xlnet-base-cased"}
NORM = "metric=composite;centre=mean"
# Tolerance to a published mean: 3 of its deviations over samples, but at least 0.02 and at most a fifth of the mean.
SPREADS, CLOSE, SHARE = 3.0, 0.02, 0.2
# Means below 0.05 are compared by their magnitude, within 0.3 decades (a factor of two).
SMALL, DECADES = 0.05, 0.3
# A published value up to NOISE is float32 rounding; a measured value below FLOOR agrees with it.
NOISE, FLOOR = 5e-7, 1e-6


def curves(single: tuple[dict[str, Any], ...]) -> Iterator[dict[str, Any]]:
    """Yield the points of the curves, with the source and the setting of the single numbers of these models."""
    text = Path(__file__).with_name("rank_by_layer.csv").read_text(encoding="utf-8")
    for point in csv.DictReader(line for line in text.splitlines() if not line.startswith("#")):
        model, phase, variant, layer = (point[name] for name in ("model", "phase", "variant", "layer"))
        mean, deviation = float(point["mean"]), float(point["std"])
        yield {
            "name": f"{model} {phase} {variant} layer {int(layer):02d}",
            **{name: single[0][name] for name in ("source", *PAPER)},
            "place": "figure 2",
            "what": f"relative residual of {model}, {phase}, {variant}, after layer {layer}",
            "kind": "measured",
            "published": mean,
            **dict(zip(("sense", "tolerance"), sense_and_tolerance(mean, deviation), strict=True)),
            "column": "value",
            "where": f"model={MODELS[model]};phase={phase};variant={variant};layer={layer};{NORM}",
            **dict.fromkeys(("less", "over", "least", "within"), ""),
            "at": single[0]["at"],
            "by": "definition;text;dtype",
        }


def sense_and_tolerance(mean: float, deviation: float) -> tuple[str, float]:
    """Return the sense and the tolerance of a point of a curve."""
    if mean <= NOISE:
        return "floor", FLOOR
    return ("magnitude", DECADES) if mean < SMALL else ("equal", min(max(CLOSE, SPREADS * deviation), SHARE * mean))
