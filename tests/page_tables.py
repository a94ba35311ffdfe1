"""Tables of made-up networks, as many as asked for, and the page of them: what the tests of the page open."""

import functools
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rankfall.measure.context import Context
from rankfall.overview.scorecard.measure import scorecard
from rankfall.report import tables
from rankfall.report.page.build import PageInputs, page
from rankfall.report.page.chart import Chart, charts
from rankfall.report.provenance import provenance
from rankfall.report.schema import CELL_COLUMNS, schema
from rankfall.report.settings import USUAL

PARTS = {
    "task_component": "sorting",
    "block": "attention",
    "norm_placement": "post",
    "embedding": "token",
    "head": "classifier",
}
TYPED = {"float": 0.5, "int": 1, "text": "none", "bool": True}
LAYERS = 7
LOG = "3 cells: 0 in store, 3 to train\n3/3 cells in store after 1.5 s"


def cell_rows(count: int) -> list[dict[str, Any]]:
    """Return networks of as many architectures as it takes, half of them trained, in five seeds; the last has diverged."""
    base = {column.name: TYPED[column.type] for column in CELL_COLUMNS}
    base |= {name: value for name, value in USUAL.items() if value != "None"} | PARTS
    base |= {"status": "done", "reason": "", "task": "sorting", "depth": LAYERS - 1, "device": "cpu", "host": "here"}
    base |= {"chance": 0.25, "attainable": 0.85, "attainable_reason": "", "train_loss": 0.1, "train_accuracy": 0.9}
    base |= {"test_loss": 0.2, "dtype": "float32", "torch": "2", "threads": 1, "together": 5}
    rows = []
    labels = itertools.product(range(count // 10 + 1), ("init", "short"), range(5))
    for number, (architecture, training, seed) in enumerate(itertools.islice(labels, count)):
        trained = training == "short"
        name = {0: "SAN", 1: "SAN+skip", 2: "transformer"}.get(architecture, f'net <{architecture}> & "more"')
        rows.append(
            base
            | {"key": f"{number:024x}", "architecture": name, "training": training, "seed": seed, "epochs": 3 * trained}
            | {"residual": "none" if architecture % 2 == 0 else "add", "lr": 0.001, "step_ms": 4.0 if trained else None}
            | {"steps": 100 * trained, "seconds": 0.4 * trained, "test_accuracy": 0.25 + 0.5 * trained + 0.01 * seed + 1e-3 / 7}
        )  # fmt: skip
    rows[-1] |= {"status": "diverged", "reason": "loss not finite at step 3"}
    return rows


def about(row: Mapping[str, Any]) -> dict[str, Any]:
    return {column.name: row[column.name] for column in CELL_COLUMNS}


def residual_rows(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    kind = {
        "place": "state",
        "quantity": "residual",
        "matrix_norm": "composite",
        "centre": "mean",
        "deviation": 0.0,
        "floor_share": 0.0,
    }
    rows = []
    for row in cells:
        if row["status"] != "done":
            rows.append(about(row))
            continue
        rate = 0.05 if row["residual"] == "add" else 1.0
        values = 0.9 * np.exp(-rate * np.arange(LAYERS) * (1 + 0.1 * rng.random()))
        rows += [about(row) | kind | {"layer": layer, "value": float(value)} for layer, value in enumerate(values)]
    return rows


def training_rows(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        about(row) | {"epoch": epoch, "split": split, "metric": metric, "value": 0.1 * epoch + 0.01 * row["seed"]}
        for row in cells if row["training"] == "short" and row["status"] == "done"
        for epoch in (1, 2, 3) for split in ("train", "test") for metric in ("loss", "accuracy")
    ]  # fmt: skip


def order_rows() -> list[dict[str, Any]]:
    row = {"block": "attention alone", "attention": "multihead", "sentinels": "none", "heads": 2, "biases": True, "quantity": "res",
           "uncertainty": 1e-9, "draws": 8, "identical_draws": 0, "method": "centred", "reason": ""}  # fmt: skip
    return [
        row | {"normaliser": normaliser, "position": position, "mask": mask, "order": 3.0 if position == "none" and mask == "none" else 1.0}
        for normaliser in ("softmax", "l2") for position in ("none", "rope") for mask in ("none", "causal")
    ]  # fmt: skip


def published_rows() -> list[dict[str, Any]]:
    row = {"source": "paper", "source_name": "Nobody 2020", "source_title": "On attention", "source_link": "https://example.org/attention",
           "place": "figure 2", "kind": "measured", "sense": "equal", "tolerance": 0.1, "published": 0.5, "setting": "",
           "seeds": 3, "held": 0, "failed": 0, "deviation": 0.01}  # fmt: skip
    ours = {"close": 0.52, "far": 0.9, "farther": 2.0, "nowhere": None}
    return [
        row | {"name": name, "what": f"a number that is {name}", "ours": value, "difference": None if value is None else value - 0.5,
               "holds": None if value is None else abs(value - 0.5) <= 0.1, "at_published": None if value is None else True}
        for name, value in ours.items()
    ]  # fmt: skip


@functools.cache
def frames(folder: Path, count: int) -> dict[str, pd.DataFrame]:
    """Return all tables of a run, written and read as a run does."""
    cells = cell_rows(count)
    rows = {"cells": cells, "residuals": residual_rows(cells), "training": training_rows(cells)}
    rows |= {"orders": order_rows(), "reproduction": published_rows()}
    written = {name: write_and_read(folder, name, some) for name, some in rows.items()}
    return written | {"scorecard": write_and_read(folder, "scorecard", scorecard(Context(table=written.get)))}


def write_and_read(folder: Path, name: str, rows: list[dict[str, Any]]) -> pd.DataFrame:
    folder.mkdir(parents=True, exist_ok=True)
    tables.write(name, rows, folder / f"{name}.parquet")
    return tables.read_frame(folder / f"{name}.parquet", name)


def provenances(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for row in cells:
        record = {"status": row["status"], "reason": row["reason"], "labels": [row["task"], row["architecture"], row["training"]],
                  "seed": row["seed"], "code": {"rankfall/nets/network.py": "0123456789ab"}, "versions": {"torch": "2", "python": "3"},
                  "content": {"architecture": row["architecture"]}, "data_key": "0",
                  "device": "cpu", "host": "here", "seconds": row["seconds"], "final": {"test": {"loss": float("nan")}}}  # fmt: skip
        snippet = f"grid:\n- {{architecture: {row['architecture']}, seed: @seed@}}\n"
        found.append(provenance(row["key"], record) | {"snippet": snippet, "log": LOG})
    return found


Drawn = list[tuple[str, Any, float]]  # line (or row of a grid), x (None: the chart has none), value


def charted(folder: Path) -> tuple[dict[str, pd.DataFrame], dict[str, Drawn]]:
    """A made-up table for each chart (but the two of `cells` and `training`), and all that the chart should show of it.

    Every other row is of something else, such as another matrix norm, and must not be shown.
    """
    cells = cell_rows(12)
    rows, drawn = {"cells": cells}, {}
    for chart in charts():
        if chart.table not in ("cells", "training"):
            rows[chart.table], drawn[chart.name] = rows_of(chart, cells[:2])
    return {name: write_and_read(folder, name, some) for name, some in rows.items()}, drawn


def rows_of(chart: Chart, cells: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], Drawn]:
    """Two lines, or two networks, two places each, by two seeds where the table has seeds; a row of something else after each."""
    about_table = schema(chart.table)
    types = {column.name: column.type for column in about_table.columns}
    base = {column.name: None if column.nullable else TYPED[column.type] for column in about_table.columns}
    fixed = {name: value for name, value in (*chart.start.items(), *chart.where.items()) if name in types}
    line = "source" if chart.line == "curve" else chart.line
    of_networks = "key" in types  # also where the table has a row a network and is no table of cells
    own_seed = not of_networks and "seed" in types
    base |= ({"network": "none"} if chart.line == "curve" else {}) | fixed
    base |= {"floor": False} if "clear" in chart.where else {}
    rng, rows, drawn = np.random.default_rng(len(chart.title)), [], []
    by_cell = line == "architecture" and of_networks  # the line is the network's own name
    ways = cells if of_networks else [{"seed": 0}, {"seed": 1}] if own_seed else [{}]
    for way, name, number in itertools.product(ways, ("one", "other"), (1, 2)):
        place = {"int": number, "float": float(number)}.get(types[chart.x], f"place {number}")
        if chart.kind == "points" and types[chart.x] == "text":
            place = name
        row = base | {name: value for name, value in about(way).items() if name in types} if of_networks else base | way
        row |= {chart.x: place} | ({} if by_cell else {line: name})
        row[chart.measured] = int(rng.integers(1, 99)) if types[chart.measured] == "int" else rng.random() + 0.1
        if (chart.kind == "points" and number == 2) or (by_cell and name == "other"):
            continue
        if "own" in chart.where:
            row["trained_layer"] = number
        if len(about_table.key) == 1 and about_table.key[0] not in (chart.x, line, "key", "seed"):
            row[about_table.key[0]] = f"{name} {number}"  # what a row is of, where that is no axis
        rows.append(row)
        shown = way["architecture"] if by_cell else name
        drawn.append((shown, None if chart.kind == "points" else place, row[chart.measured]))
        column = next((column for column in chart.where if column in types), None)
        if "own" in chart.where:
            rows.append(row | {"trained_layer": number + 5, chart.measured: 0})
        elif "clear" in chart.where:
            rows.append(row | {"floor": True, chart.x: number + 10, chart.measured: 0})
        elif column is not None:
            other = {"bool": False, "text": "something else"}[types[column]]
            apart = {} if column in about_table.key else {chart.x: number + 10}
            rows.append(row | {column: other, chart.measured: 0} | apart)
    return rows, drawn


def charted_page(folder: Path) -> tuple[str, dict[str, Drawn]]:
    some, drawn = charted(folder / "tables")
    return page(PageInputs("charts", list(some), some.__getitem__, [], {}, "0")), drawn


def made_page(folder: Path, count: int, **options: Any) -> str:
    """Return the text of the page of `count` networks; its tables are in `folder`/tables."""
    some, known = frames(folder / "tables", count), provenances(cell_rows(count))
    return page(
        PageInputs("made up", list(some), some.__getitem__, known, {"scorecard": "All < numbers."}, "0"), **options
    )
