"""Captions compare numbers of one setting: where lines of a figure differ in more than their names, it is said in what, and each setting
has its own first and last. Tables by hand."""

from typing import Any

import pandas as pd
import pytest
from seen import line

from rankfall.identity.attribution.figure import attribution
from rankfall.report.account import account
from rankfall.report.colours import CHANCE
from rankfall.report.selection import chances
from rankfall.report.settings import differences, say_differ
from rankfall.use.curves import figure as curves

NARROW = {"width": 16, "depth": 2, "task_component": "sorting(length=4)"}
WIDE = {"width": 32, "depth": 4, "task_component": "sorting(length=8)"}
NETWORKS = {"A": (NARROW, 0.3, 0.4), "B": (NARROW, 0.6, 0.4), "C": (WIDE, 0.9, 0.8)}  # setting, value, chance


def networks(**more: Any) -> pd.DataFrame:
    """Two seeds of each."""
    rows = [
        {"key": f"{name}{seed}", "task": "sorting", "architecture": name, "training": "ok", "seed": seed, "status": "done"}
        | setting | {"value": value, "chance": chance} | more
        for name, (setting, value, chance) in NETWORKS.items()
        for seed in range(2)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_only_what_differs_is_named() -> None:
    words = {"A": "depth 2, length 4, width 16", "B": "depth 2, length 4, width 16", "C": "depth 4, length 8, width 32"}
    table = networks()
    assert differences(table) == words
    assert differences(table, but=["task_component", "width"])["C"] == "depth 4"
    assert set(differences(table[table.architecture != "C"]).values()) == {""}
    assert say_differ(table) == f", which differ in setting too ({words['A']}; {words['C']})"
    assert say_differ(table[table.architecture != "C"]) == ""


def test_a_size_that_nothing_reads_makes_no_setting() -> None:
    table = networks().drop(columns=["width", "depth", "task_component"])
    assert set(differences(table.assign(depth=2, heads=[2, 2, 2, 2, None, None])).values()) == {""}
    assert differences(table.assign(depth=2, heads=[2, 2, 4, 4, None, None]))["B"] == "heads 4"


def curves_of(table: pd.DataFrame) -> tuple[str, Any]:
    tables = {"training": table.assign(epoch=1, split="test", metric="accuracy"), "cells": table}
    picture = curves(tables.__getitem__)
    return picture.caption, picture.figure.axes[0]


def test_curves_have_a_first_for_each_setting_and_a_line_of_chance_only_where_it_is_one() -> None:
    caption, panel = curves_of(networks())
    assert (
        "At the end it is with depth 2, length 4, width 16: highest in B (0.600) and lowest in A (0.300); with depth 4, length 8, "
        "width 32: in C (0.900); chance, the best guess without the input, is 0.400 to 0.800, by the options of the task."
        in caption
    )
    assert "chance" not in [one.get_label() for one in panel.lines]
    table = networks()
    caption, panel = curves_of(table[table.architecture != "C"])
    assert "At the end it is highest in B (0.600) and lowest in A (0.300); chance (dashed), the best guess" in caption
    assert "is 0.400." in caption and line(panel, CHANCE)[0] == pytest.approx(0.4)


def attribution_rows() -> pd.DataFrame:
    rows = networks(layer=1, method="jacobian", kept_tokens="all", quantity="own share", other=None, value_reason="")
    return rows.assign(median=rows.value + 0.1 * rows.seed, low=0.1, lower=0.2, upper=0.8, high=0.9)


@pytest.mark.long
def test_attribution_says_its_task_its_chance_and_deviations() -> None:
    sizes = pd.DataFrame({"task": ["sorting", "hull"], "split": "test", "length": [8, 10]})
    tables = {"attribution": attribution_rows(), "datasets": sizes}
    picture = attribution(tables.__getitem__)
    assert "dotted: equal shares of 8 tokens, 12.5%" in picture.caption
    assert "equal shares" in [one.get_label() for one in picture.figure.axes[0].lines]
    assert "is 35.0 ± 7.1% (A, ok, depth 2, length 4, width 16), 65.0 ± 7.1% (B, ok, depth 2" in picture.caption
    lengths = {"datasets": pd.DataFrame({"task": "sorting", "split": "test", "length": [4, 8]})}
    several = attribution((tables | lengths).__getitem__)
    assert "equal shares" not in [one.get_label() for one in several.figure.axes[0].lines]


def test_chance_is_a_mean_over_seeds_and_never_over_tasks() -> None:
    table = networks()
    table.loc[table.key == "C1", "chance"] = 0.7
    assert chances(table) == pytest.approx([0.4, 0.75])
    assert chances(table.drop(columns="chance"), table) == pytest.approx([0.4, 0.75])
    assert chances(table.assign(chance=None)) == []


def test_a_network_of_another_depth_than_the_figures_is_left_out_for_that() -> None:
    table = networks()
    drawn = table[table.depth == 4]
    known = account(table, drawn, ["architecture"], only_depth=4)
    assert known.left_out == " Not drawn: 2 networks of depth 2 each of A, B (another depth is drawn)."
    assert "nothing of it can be drawn" in account(table, drawn, ["architecture"]).left_out
