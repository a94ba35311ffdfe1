"""Read what residual networks keep after training, by layer, from a run of workflow/presets/bands.yaml.

Networks that learned nothing are left out: those whose loss on held-out data is not below that of their first epoch by a tenth.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.bands import Curve
from rankfall.api.layers import architecture, draw_states, network_of
from rankfall.check.bands import kind_of
from rankfall.streams.examine import examine

LEARNED = 0.9  # largest final loss, as a share of that of the first epoch
PARTS = ("attention", "mask", "norm_placement", "residual", "mlp", "norm")
NETWORKS = "small networks of our own, each trained on one task"


def curves_of_run(results: Path) -> tuple[list[Curve], dict[str, Any]]:
    """Return the curves, and a description of the networks."""
    rows = pd.read_parquet(results / "tables" / "residuals.parquet")
    rows = rows[(rows.place == "state") & (rows.quantity == "residual") & (rows.centre == "mean")]
    rows = rows[(rows.matrix_norm == "composite") & (rows.status == "done") & (rows.epochs > 0)]
    learned = rows[rows.key.isin(cells_that_learned(pd.read_parquet(results / "tables" / "training.parquet")))]
    origin = {
        "networks": NETWORKS,
        "widths": sorted({int(width) for width in learned.width}),
        "tasks": sorted(set(learned.task)),
        "cells": int(learned.key.nunique()),
        "left_out": int(rows.key.nunique() - learned.key.nunique()),
    }
    return list(curves_of_cells(learned)), origin


def cells_that_learned(training: pd.DataFrame) -> set[str]:
    """Return the keys of cells whose loss on held-out data fell."""
    losses = training[(training.split == "test") & (training.metric == "loss")].sort_values("epoch")
    cells = losses.groupby("key")["value"]
    return {str(key) for key, values in cells if values.iloc[-1] <= LEARNED * values.iloc[0]}


def curves_of_cells(rows: pd.DataFrame) -> Iterator[Curve]:
    """Yield a curve for each cell, named after its architecture and task."""
    kinds: dict[tuple[Any, ...], str] = {}
    for _, cell in rows.groupby("key"):
        cell = cell.sort_values("layer")
        first = cell.iloc[0]
        parts = tuple(without_options(first[name]) for name in PARTS)
        if parts not in kinds:
            heads = 1 if pd.isna(first.heads) else int(first.heads)
            kinds[parts] = examine_kind(dict(zip(PARTS, parts)), int(first.width), heads)
        mask = " causal" if first["mask"] == "causal" else ""
        name = f"our {first.norm_placement}-norm{mask} {without_options(first.attention)}, {first.task}"
        yield kinds[parts], name, [float(value) for value in cell["value"]]


def without_options(part: Any) -> Any:
    """Return the name of a component: `layer` for `layer(eps=1e-12)`."""
    return part.partition("(")[0] if isinstance(part, str) else part


def examine_kind(parts: dict[str, Any], width: int, heads: int) -> str:
    """Return the kind that a check finds for a network of these parts."""
    components = {name: value for name, value in parts.items() if isinstance(value, str)}
    network = network_of(architecture(components, depth=2, width=width, heads=heads), 1, 16, 0)
    return kind_of(examine(network, draw_states(1, 2, 16, width, 0)).flows[0])
