"""Guards the figures of the position study: what is drawn where, and that captions say the table's numbers."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from seen import line

from rankfall.position.rho import figure as rho
from rankfall.position.rho import most_frequent
from rankfall.report.colours import WHOLE, colour

SHARES = (0.0, 0.5, 1.0)
VALUES = {"RPE": (0.4, 0.2, 0.125), "URPE": (1.0, 0.9, 0.8)}


def tables(task: str = "places") -> dict[str, pd.DataFrame]:
    """Return three seeds 0.01 apart around these accuracies; earlier epochs, other splits and metrics have other values."""
    metric = "accuracy" if task == "places" else "accuracy_informative"
    last = {"epoch": 2, "split": "test", "metric": metric}
    others = [{"epoch": 1}, {"split": "train"}, {"metric": "loss"}, {"metric": "accuracy_constant"}]
    rows = []
    for (name, values), seed in product(VALUES.items(), range(3)):
        for share, value in zip(SHARES, values):
            options = f"length=8, repeated=null, rho={share}, symbols=10, test=9, train=90"
            about = {"key": f"{task}{name}{share}{seed}", "task": task, "architecture": name, "seed": seed, "status": "done",
                     "training": "short", "depth": 1, "task_component": f"{task}({options})"}  # fmt: skip
            rows.append(about | last | {"value": value + 0.01 * (seed - 1)})
            rows += [about | last | change | {"value": 9.0} for change in others]
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
    assert "laces at a share of 1: from 0.125 ± 0.010 (RPE) to 0.800 ± 0.010 (URPE)." in picture.caption
    assert "over 3 seeds" in picture.caption
    assert picture.numbers is not None and picture.numbers["deviation over seeds"].tolist() == pytest.approx([0.01] * 6)


def test_of_even_tokens_the_half_that_is_not_constant() -> None:
    (panel,) = rho(tables("even_tokens").__getitem__).figure.axes
    assert line(panel, colour("RPE")) == pytest.approx([0.4, 0.2, 0.125])
    assert line(panel, WHOLE) == pytest.approx([most_frequent(8, 10, share) for share in SHARES])
