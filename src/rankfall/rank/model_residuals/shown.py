"""Declare the table `model_residuals` and what is shown of it: residual of a real model's tokens, layer by layer."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rankfall.rank.residuals.shown import TALL
from rankfall.report.lines import POSITIVE
from rankfall.report.page.chart import MODEL, Chart
from rankfall.report.published_numbers import PAPER, read_published
from rankfall.report.schema import MODEL_COLUMNS, Table, declare_table


def columns() -> Table:
    """Declare the table: one row per number."""
    return declare_table(
        "model_residuals",
        "a model x phase x definition x seed x variant x layer x sample x metric x centre",
        MODEL_COLUMNS,
        """
        variant text: what is left of every block: see docs/models.md
        layer int: 0 is the state that enters the first layer
        sample int: which text of the batch
        metric text: norm of the residual (composite, l1, linf, frobenius), or sigma_ratio, stable_rank; without_first, without_largest:
            composite, without the first token, or without the three channels of the largest mean square in the sample
        centre text: mean of the tokens, best (minimises the norm, as for `residuals`), or none (spectra)
        value float?: residual over the norm of the whole state; for spectra the number itself; null: see value_reason
        absolute float?: the residual itself; null for stable_rank, and beyond the range of float64
        floor bool?: the value is rounding noise of `dtype`; null for stable_rank, or no value
        value_reason text?: why there is no value: a state that is not finite, zero, or beyond the range of `dtype`; else empty
        """,
        key="model revision phase definition text length dtype variant seed layer sample metric centre",
        cells=False,
    )


RESIDUAL = {"metric": "composite", "centre": "mean"}


CHARTS = (
    Chart(
        "models",
        "Residual by layer of real models",
        "Transformer: the model as it is; SAN: its attention alone, without skip connections and MLPs; SAN+skip and SAN+MLP: with these.",
        "layer",
        "value",
        "layer",
        TALL,
        line="variant",
        choose=MODEL,
        start={"model": "bert-base-cased", "definition": "clean"},
        where=RESIDUAL,
        within=POSITIVE,
        opening=True,
        place=70,
    ),
)


DATA = ["rank/model_residuals/published.csv", "rank/model_residuals/rank_by_layer.csv"]
MODELS = {"BERT": "bert-base-cased", "ALBERT": "albert-base-v2", "XLNet": "xlnet-base-cased"}
NORM = "metric=composite;centre=mean"
SPREADS, CLOSE, SHARE = 3.0, 0.02, 0.2
SMALL, DECADES = 0.05, 0.3
NOISE, FLOOR = (
    5e-7,
    1e-6,
)  # a published value up to NOISE is float32 rounding; a measured value below FLOOR agrees with it


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


SINGLE = read_published(__file__)
PUBLISHED = (*SINGLE, *curves(SINGLE))
