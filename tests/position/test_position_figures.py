"""Guards the figures of the position study: what is drawn where, and that captions say the table's numbers."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from seen import line

from rankfall.errors import RankfallError
from rankfall.position.offsets.shown import figure as offsets
from rankfall.position.rho import figure as rho
from rankfall.position.rho import most_frequent
from rankfall.report.colours import WHOLE, colour

SHARES = (0.0, 0.5, 1.0)
VALUES = {"RPE": (0.4, 0.2, 0.125), "URPE": (1.0, 0.9, 0.8)}


def tables(task: str = "places") -> dict[str, pd.DataFrame]:
    """Three seeds 0.01 apart around these accuracies; earlier epochs, other splits and metrics have other values."""
    rows = []
    for name, values in VALUES.items():
        for share, value in zip(SHARES, values):
            for seed in range(3):
                options = f"length=8, repeated=null, rho={share}, symbols=10, test=9, train=90"
                about = {"key": f"{task}{name}{share}{seed}", "task": task, "architecture": name, "seed": seed, "status": "done",
                         "training": "short", "depth": 1, "task_component": f"{task}({options})"}  # fmt: skip
                good = {
                    "epoch": 2,
                    "split": "test",
                    "metric": "accuracy" if task == "places" else "accuracy_informative",
                }
                good["value"] = value + 0.01 * (seed - 1)
                wrong = [{"epoch": 1}, {"split": "train"}, {"metric": "loss"}, {"metric": "accuracy_constant"}]
                rows += [about | good] + [about | good | change | {"value": 9.0} for change in wrong]
    course = pd.DataFrame(rows)
    cells = course.drop_duplicates("key")[["key"]].assign(chance=0.125 if task == "places" else 0.5)
    return {"training": course, "cells": cells}


def test_lines_are_accuracies_at_the_end_over_seeds() -> None:
    picture = rho(tables().__getitem__, architectures=["RPE", "URPE"])
    (panel,) = picture.figure.axes
    for name, values in VALUES.items():
        assert line(panel, colour(name)) == pytest.approx(sorted(values, reverse=True))
    assert line(panel, WHOLE) == pytest.approx([0.125] * 3)
    assert list(panel.get_xticks()) == pytest.approx([-np.log2(9), -np.log2(5), 0])
    assert (
        "laces at a share of 1: RPE 0.125 ± 0.010, URPE 0.800 ± 0.010." in picture.caption
        and "over 3 seeds" in picture.caption
    )
    assert picture.numbers is not None and picture.numbers["deviation over seeds"].tolist() == pytest.approx([0.01] * 6)


def test_of_even_tokens_the_half_that_is_not_constant() -> None:
    (panel,) = rho(tables("even_tokens").__getitem__).figure.axes
    assert line(panel, colour("RPE")) == pytest.approx([0.4, 0.2, 0.125])
    assert line(panel, WHOLE) == pytest.approx([most_frequent(8, 10, share) for share in SHARES])


def terms(which: str, values: list[list[float]], seed: int = 0) -> list[dict[str, Any]]:
    """A line of numbers for each head."""
    reach = len(values[0]) // 2
    return [
        {"which": which, "of_head": head, "offset": index - reach, "value": value, "seed": seed, "layer": None, "task": "places",
         "architecture": "URPE", "training": "short", "status": "done", "depth": 1, "key": f"k{seed}"}
        for head, line in enumerate(values, 1)
        for index, value in enumerate(line)
    ]  # fmt: skip


def test_matrices_are_those_of_the_head_that_differs_most() -> None:
    flat, steep = [1.0, 1.0, 1.0, 1.0, 1.1], [0.5, 0.8, 1.0, 1.2, 1.6]
    rows = terms("C", [flat, steep]) + terms("C", [flat, [2.0, 1.0, 1.0, 1.0, 1.0]], seed=1)
    table = pd.DataFrame(rows).astype({"layer": pd.Int64Dtype()})
    picture = offsets(lambda name: table)
    lines, image = picture.figure.axes[:2]
    assert image.get_title(loc="left") or image.get_title() == "C, head 2"
    drawn = image.collections[0].get_array().reshape(3, 3)
    assert np.asarray(drawn).tolist() == [
        [1.0, 0.8, 0.5],
        [1.2, 1.0, 0.8],
        [1.6, 1.2, 1.0],
    ]  # row i, column j: c of i - j
    assert len([one for one in lines.lines if len(one.get_xdata())]) == 3
    assert "Over all heads and 2 seeds C of URPE goes from 0.50 to 2.00." in picture.caption
    own = table.assign(layer=pd.array([1] * len(table), dtype="Int64"))
    with pytest.raises(RankfallError, match="every layer has its own terms"):
        offsets(lambda name: own)
