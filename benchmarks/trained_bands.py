"""What residual networks keep after training, by layer: the cells of workflow/presets/bands.yaml.

Networks that learned nothing are left out: those whose loss on held-out data is not below that of their first epoch by a tenth.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

LEARNED = 0.9  # of the loss of the first epoch, at most
PARTS = ("attention", "mask", "norm_placement", "residual", "mlp", "norm")
SAID = "small networks of our own, each trained on one task"

Curve = tuple[str, str, list[float]]  # kind, name, residual by layer


def trained(results: Path) -> tuple[list[Curve], dict[str, Any]]:
    """The curves, and what they are of."""
    rows = residuals_of(results)
    learned = that_learned(pd.read_parquet(results / "tables" / "training.parquet"))
    kept = rows[rows.key.isin(learned)]
    curves = list(of_cells(kept))
    made = {
        "networks": SAID,
        "widths": sorted({int(one) for one in kept.width}),
        "tasks": sorted(set(kept.task)),
        "cells": int(kept.key.nunique()),
        "left_out": int(rows.key.nunique() - kept.key.nunique()),
    }
    return curves, made


def residuals_of(results: Path) -> pd.DataFrame:
    """Those of states, about the mean token, of cells that were trained to the end."""
    rows = pd.read_parquet(results / "tables" / "residuals.parquet")
    rows = rows[(rows.place == "state") & (rows.quantity == "residual") & (rows.centre == "mean")]
    return rows[(rows.matrix_norm == "composite") & (rows.status == "done") & (rows.epochs > 0)]


def that_learned(training: pd.DataFrame) -> set[str]:
    """Keys of cells whose loss on held-out data fell."""
    losses = training[(training.split == "test") & (training.metric == "loss")].sort_values("epoch")
    found = set()
    for key, one in losses.groupby("key"):
        values = list(one["value"])
        if values[-1] <= LEARNED * values[0]:
            found.add(str(key))
    return found


def of_cells(rows: pd.DataFrame) -> Iterator[Curve]:
    """A curve a cell, called by its architecture and task."""
    kinds: dict[tuple[Any, ...], str] = {}
    for _, one in rows.groupby("key"):
        cell = one.sort_values("layer")
        first = cell.iloc[0]
        parts = tuple(bare(first[name]) for name in PARTS)
        if parts not in kinds:
            kinds[parts] = kind_of_parts(
                dict(zip(PARTS, parts)), int(first.width), int(first.heads) if first.heads == first.heads else 1
            )
        mask = " causal" if first["mask"] == "causal" else ""
        name = f"our {first.norm_placement}-norm{mask} {bare(first.attention)}, {first.task}"
        yield kinds[parts], name, [float(value) for value in cell["value"]]


def bare(part: Any) -> Any:
    """A component's name without its options: layer(eps=1e-12) is layer."""
    return part.partition("(")[0] if isinstance(part, str) else part


def kind_of_parts(parts: dict[str, Any], width: int, heads: int) -> str:
    """As a check finds it of the network itself."""
    from rankfall.api.layers import architecture, draw_states, network_of
    from rankfall.check.bands import kind_of
    from rankfall.streams.examine import examine

    given = {name: value for name, value in parts.items() if isinstance(value, str)}
    network = network_of(architecture(given, depth=2, width=width, heads=heads), 1, 16, 0)
    return kind_of(examine(network, draw_states(1, 2, 16, width, 0)).flows[0])
