"""Captions compare numbers of one setting: where lines of a figure differ in more than their names, it is said in what, and each setting
has its own first and last. Tables by hand."""

from typing import Any

import pandas as pd
import pytest
from identity_rows import DEPTH, cells, rates
from seen import line

from rankfall.identity.attribution.figure import attribution
from rankfall.identity.token_identity.figure import token_identity
from rankfall.position.conflict.figure import caption as conflict_caption
from rankfall.position.extrapolation.figure import extrapolation
from rankfall.position.rho.figure import describe_finding as rho_finding
from rankfall.rank.circle.figure import each as circle_each
from rankfall.rank.decomposition.figure import decomposition
from rankfall.rank.sweep.figure import sweep
from rankfall.report.account import account
from rankfall.report.chance import chances
from rankfall.report.colours import CHANCE
from rankfall.report.settings import differences, say_differ
from rankfall.use.curves.figure import curves

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


def test_extrapolation_has_a_best_for_each_setting() -> None:
    table = networks(length=32, trained_length=32, times=1, refused="").assign(accuracy=lambda found: found.value)
    picture = extrapolation(lambda name: table)
    assert "(chance, 0.400 to 0.800, by the options of the task)" in picture.caption
    assert (
        "At 32 tokens with depth 2, length 4, width 16: best in B (0.600); with depth 4, length 8, width 32: in C (0.900)."
        in picture.caption
    )
    assert "chance" not in [one.get_label() for one in picture.figure.axes[0].lines]
    one = extrapolation(lambda name: table[table.architecture != "C"])
    assert "(dashed: chance, 0.400)" in one.caption and "At 32 tokens best in B (0.600)." in one.caption


@pytest.mark.long
def test_identity_has_a_most_for_each_setting() -> None:
    table = cells(rates)
    same = token_identity(lambda name: table, training="init").caption
    wide = table.assign(width=[32 if name.startswith("SAN+") else 16 for name in table.architecture])
    caption = token_identity(lambda name: wide, training="init").caption
    assert f"after layer {DEPTH} most often in transformer" in same and "width" not in same
    assert f"after layer {DEPTH} with width 16: most often in transformer" in caption
    assert "with width 32: most often in SAN+skip (0.66) and least in SAN+MLP (0.00)" in caption


def test_a_training_of_another_depth_says_so() -> None:
    rows = [
        {"key": training, "task": "sorting", "architecture": "bare", "training": training, "seed": 0, "status": "done", "depth": depth}
        | {"heads": 2, "term": "paths", "length": length, "output_share": 1 / (depth + 1), "norm_share": 0.2, "accuracy": 0.9}
        | {"accuracy_alone": 0.5, "accuracy_without": 0.5, "error": 0.0, "epochs": depth}
        for training, depth in (("init", 3), ("converged", 4))
        for length in range(depth + 1)
    ]  # fmt: skip
    chance = pd.DataFrame({"key": ["init", "converged"], "chance": [0.25, 0.5]})
    picture = decomposition({"decomposition": pd.DataFrame(rows), "cells": chance}.__getitem__)
    assert "make up 50% (init, depth 3) and 40% (converged, depth 4) of the output" in picture.caption
    assert "(dotted: chance, 0.25 to 0.50)" in picture.caption
    dotted = [[one for one in panel.lines if one.get_linestyle() == ":"] for panel in picture.figure.axes[2:]]
    assert [[list(one.get_ydata()) for one in lines] for lines in dotted] == [[[0.25, 0.25]], [[0.5, 0.5]]]


def test_lists_of_architectures_name_what_differs() -> None:
    table = networks()
    wide = differences(table, but=["task_component"])
    last = pd.DataFrame({"architecture": ["A", "C"], "task": "circle", "met": [1, 2], "roll_outs": [2, 2], "gone": 0})
    assert circle_each(last, wide) == ": 1 of 2 of A (depth 2, width 16), 2 of 2 of C (depth 4, width 32)"
    said = rho_finding(table.assign(kind="places", rho=1.0), ["places"], ["A", "C"], wide)
    assert said == "Places at a share of 1: A (depth 2, width 16) 0.300, C (depth 4, width 32) 0.900."


def test_points_of_several_settings_are_not_ranked() -> None:
    point = {"missing": "", "rows": 1.0, "kept": 0.9, "each": {0: 0.9, 1: 0.91}, "accuracy": 0.5, "name": "A"}
    found = [point, point | {"name": "B", "kept": 0.8, "each": {0: 0.8, 1: 0.81}}]
    assert "most in A (0.91)" in conflict_caption(found, 4, 0.5, "text", "1 seed")
    text = conflict_caption(found, 4, 0.5, "text", "1 seed", say_differ(networks()))
    assert "most in" not in text and text.endswith(
        "They are not ranked: numbers of different settings are not compared."
    )
    assert (
        "2 architectures, which differ in setting too (depth 2, length 4, width 16; depth 4, length 8, width 32), tells"
        in text
    )


def test_a_sweep_says_what_else_its_lines_differ_in() -> None:
    rows = networks(sample=0, floor=False, value_reason="").assign(log10_residual=-1.0, layer=1)
    assert (
        "Lines of one panel differ in depth, task component and width too."
        in sweep(lambda name: rows, lines=["architecture"]).caption
    )
    assert (
        "differ in"
        not in sweep(lambda name: rows, lines=["architecture"], panels=["width", "depth", "task_component"]).caption
    )


def attribution_rows() -> pd.DataFrame:
    rows = networks(layer=1, method="jacobian", kept_tokens="all", quantity="own share", other=None, value_reason="")
    return rows.assign(median=rows.value + 0.1 * rows.seed, low=0.1, lower=0.2, upper=0.8, high=0.9)


@pytest.mark.long
@pytest.mark.parametrize("task", [None, "sorting"])
def test_attribution_says_its_task_its_chance_and_deviations(task: str | None) -> None:
    sizes = pd.DataFrame({"task": ["sorting", "hull"], "split": "test", "length": [8, 10]})
    tables = {"attribution": attribution_rows(), "datasets": sizes}
    picture = attribution(tables.__getitem__, task=task)
    assert (
        "by layer, on sorting: share" in picture.caption
        and "dotted: equal shares of 8 tokens, 12.5%" in picture.caption
    )
    assert "equal shares" in [one.get_label() for one in picture.figure.axes[0].lines]
    assert "is 35.0 ± 7.1% (A, ok, depth 2, length 4, width 16), 65.0 ± 7.1% (B, ok, depth 2" in picture.caption
    lengths = {"datasets": pd.DataFrame({"task": "sorting", "split": "test", "length": [4, 8]})}
    several = attribution((tables | lengths).__getitem__, task=task)
    assert "Equal shares of all tokens are 12.5% to 25.0%, by the options of the task." in several.caption
    assert "equal shares" not in [one.get_label() for one in several.figure.axes[0].lines]


def test_attribution_says_which_methods_lie_on_each_other() -> None:
    """The Jacobian's line, which the others are compared with, lay unseen under that of another method."""
    shares = attribution_rows()
    hidden = [shares.assign(quantity="not first", method=method, value=0.5) for method in ("jacobian", "norms")]
    tables = {
        "attribution": pd.concat([shares, *hidden]),
        "datasets": pd.DataFrame(columns=["task", "split", "length"]),
    }
    caption = attribution(tables.__getitem__, task="sorting").caption
    assert "In the third column lie on each other jacobian and norms." in caption


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


def test_what_is_not_drawn_at_the_depth_that_is_was_not_left_out_for_its_depth() -> None:
    """Networks of depth 3 were said to be missing since another depth is drawn, which was 3; they were in no table of what is drawn."""
    table = networks()
    both = pd.concat([table, table.assign(depth=6 - table.depth, key="o" + table.key)])
    drawn = both[(both.depth == 4) & (both.architecture != "A")]
    said = account(both, drawn, ["architecture"], only_depth=4, why="not measured").left_out
    assert "of depth 4 of A (not measured)" in said and "of depth 4 of A (another" not in said, said
    alone = account(both[both.architecture == "A"], both[:0], ["architecture"]).left_out
    assert "another depth" not in alone and alone.count("nothing of it can be drawn") == 2, alone
