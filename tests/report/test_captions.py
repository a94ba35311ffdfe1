"""What a figure says of networks that it does not draw: one seed of an architecture diverged, all of another, and no caption is silent."""

import itertools
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
from matplotlib.collections import PolyCollection

from rankfall import components
from rankfall.report import style
from rankfall.report.captions import describe_coinciding
from rankfall.report.lines import legend_below, lines, steps
from rankfall.report.looks import looks

WHOLE, WARM, COLD = "net_whole", "net_warm", "net_cold"
LABELS = {WHOLE: "Complete", WARM: "Warm", COLD: "Frozen"}
SEEDS = (0, 1, 2)
LAYERS = range(3)
TASK = "places(length=8, repeated=null, rho=0.5, symbols=10, test=9, train=90)"
Row = dict[str, Any]
MADE_OF = {"attention": "multihead", "normaliser": "softmax", "position": "none", "mask": "none", "sentinels": "none"}


def networks() -> Iterator[Row]:
    for name, seed in itertools.product((WHOLE, WARM, COLD), SEEDS):
        lost = name == COLD or (name == WARM and seed == 1)
        yield {"key": f"{name} {seed}", "task": "places", "task_component": TASK, "architecture": name, "training": "short",
               "depth": 2, "width": 8, "heads": 2, "seed": seed, "status": "diverged" if lost else "done", "reason": "",
               **MADE_OF}  # fmt: skip


def rows_of(off: float) -> dict[str, list[Row]]:
    """Return what was measured of a network, by table, with numbers that are off by so much."""
    state = {"place": "state", "quantity": "residual", "matrix_norm": "composite", "centre": "mean", "floor_share": 0.0}
    law = {"sample": 0, "floor": False, "method": "centred", "method_reason": "", "exponent": 1.0, "lemma_slack": 1.0,
           "proven_slack": 2.0, "value_reason": "", "log10_float64": -1.0, "log10_float32": -1.0}  # fmt: skip
    path = {"kind": "path", "evaluation": "recomputed", "paths": 5, "accuracy": 0.01 + off}
    long = {"trained_length": 8, "accuracy": 0.02 + off, "kept": 0.02 + off, "loss": 1.0, "chance": 0.05, "refused": ""}
    identity = {
        "candidates": "sentence",
        "distance": "cosine",
        "rate": 0.97 + off / 4,
        "chance": 0.125,
        "low": 0.9,
        "high": 1.0,
    }
    share = {"kept_tokens": "all", "other": None, "value": 0.3 + off, "median": 0.3, "low": 0.1, "lower": 0.2, "upper": 0.4,
             "high": 0.5, "value_reason": ""}  # fmt: skip
    shares = (("own share", "jacobian"), ("not first", "norms"), ("distance 1", "jacobian"))
    maps = [("naive", {}), *((name, {"loss": "cosine"}) for name in ("linear", "mlp"))]
    return {
        "residuals": [state | {"layer": layer, "value": 0.5**layer + off} for layer in LAYERS],
        "law": [law | {"layer": layer, "log10_residual": -1.0 - 2 * layer + off} for layer in LAYERS],
        "training": [{"epoch": n, "split": "test", "metric": "accuracy", "value": 0.97 + off / 4} for n in (1, 2)],
        "paths": [{"kind": "whole", "accuracy": 0.97}, {"kind": "chance", "accuracy": 0.02 + off}]
        + [path | {"length": length, "repeat": repeat} for length in LAYERS for repeat in (0, 1)],
        "extrapolation": [long | {"length": length, "times": length / 8} for length in (8, 16)],
        "token_identity": [
            identity | {"layer": layer, "map": name, "rate_reason": ""} | (loss and loss | {"trained_layer": layer})
            for layer in LAYERS for name, loss in maps
        ],
        "attribution": [
            share | {"layer": layer, "quantity": quantity, "method": method}
            for layer in (1, 2) for quantity, method in shares
        ],
    }  # fmt: skip


def tables() -> dict[str, pd.DataFrame]:
    """Return tables as they are: what was measured of networks that are done, and a row of each that is not."""
    known = [(about, rows_of(0.05 * about["seed"]) if about["status"] == "done" else {}) for about in networks()]
    frames = {
        name: pd.DataFrame([about | row for about, rows in known for row in rows.get(name, [{}])]).convert_dtypes()
        for name in rows_of(0.0)
    }
    cells = pd.DataFrame(list(networks())).assign(chance=0.125)
    return frames | {"cells": cells, "datasets": pd.DataFrame([{"task": "places", "split": "test", "length": 8}])}


FIGURES: dict[str, Row] = {
    "residuals": {}, "law": {}, "sweep": {"lines": ["architecture"]}, "curves": {}, "paths": {}, "extrapolation": {}, "token_identity": {},
    "attribution": {},
}  # fmt: skip


@pytest.fixture(scope="module", params=FIGURES)
def picture(request: pytest.FixtureRequest) -> style.Picture:
    with style.apply_style(), looks(LABELS, {WARM: "#123456"}):
        drawn: style.Picture = components.load("figure", request.param)(tables().__getitem__, **FIGURES[request.param])
    return drawn


def test_seeds_are_counted_by_line_and_what_diverged_is_named(picture: style.Picture) -> None:
    assert "2 to 3 seeds" in picture.caption
    assert "Not drawn: 4 networks (diverged: Frozen 3, Warm 1)" in picture.caption


def test_no_band_leaves_the_range_of_its_quantity(picture: style.Picture) -> None:
    """Means of .02 and .97 with deviations of .04: all quantities here but the law, offsets and ranks are shares or sizes."""
    for panel in picture.figure.axes:
        about = panel.get_ylabel()
        if panel.yaxis_inverted() or panel.get_yscale() == "symlog" or "offset" in panel.get_xlabel():
            continue
        for band in panel.collections:
            for path in band.get_paths() if isinstance(band, PolyCollection) else ():
                low, high = path.vertices[:, 1].min(), path.vertices[:, 1].max()  # type: ignore[index]
                assert low >= 0, about
                assert high <= 1 or not any(word in about for word in ("accuracy", "rate", "own share")), about


def test_values_that_do_not_exist_are_left_out_and_counted_with_their_reason() -> None:
    table = tables()["residuals"].query("architecture == @WHOLE")
    gone = (table.seed == 1) & (table.layer == 2)
    table = table.assign(value=table.value.mask(gone), value_reason=gone.map({True: "beyond float64", False: ""}))
    picture = components.load("figure", "residuals")(lambda name: table)
    assert f"1 value (beyond float64: {WHOLE} 1)" in picture.caption
    assert picture.numbers.set_index("layer").seeds.to_dict() == {0: 3, 1: 3, 2: 2}


@pytest.mark.parametrize(
    ("name", "source"), [("curves", "training"), ("extrapolation", "extrapolation"), ("attribution", "attribution")]
)
def test_of_networks_of_two_depths_the_deepest_are_drawn(name: str, source: str) -> None:
    """After minutes of a run it said that they are two networks a seed."""
    table = tables()[source].query("architecture == @WHOLE")
    both = pd.concat([table, table.assign(depth=table.depth - 1, key="f" + table.key)])
    datasets = pd.DataFrame({"task": "sorting", "split": "test", "length": [4]})
    read = {**tables(), "datasets": datasets}
    alone, deep = (components.load("figure", name)({**read, source: one}.__getitem__) for one in (table, both))
    assert alone.numbers is not None and alone.numbers.equals(deep.numbers)
    assert f"Not drawn: 3 networks (another depth is drawn: {WHOLE} 3)" in deep.caption
    assert "another depth" not in alone.caption


def test_lines_on_top_of_each_other_are_named() -> None:
    """A reader saw two lines where the legend has four."""
    heights = {"A": [1.0, 0.5, 0.1], "B": [1.0, 0.5005, 0.1], "C": [1.0, 0.9, 0.8], "D": [1.0, 0.5, 0.8]}
    table = pd.DataFrame(
        {"layer": layer, "value": value if panel == "left" else value + place / 5, "line": name, "panel": panel}
        for panel in ("left", "right")
        for place, (name, values) in enumerate(heights.items())
        for layer, value in enumerate(values)
    )
    grid = lines(table, "layer", "value", "line", steps(heights), col="panel")
    legend_below(grid)
    assert describe_coinciding(grid.figure) == " Lines on top of each other: A and B (left)."
    alone = lines(table[table.panel == "right"], "layer", "value", "line", steps(heights))
    legend_below(alone)
    assert describe_coinciding(alone.figure) == ""
