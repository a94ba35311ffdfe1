"""Captions compare numbers of one setting: where lines of a figure differ in more than their names, it is said in what, and each setting
has its own first and last. Figures of the law average no rows from where a network of the group has no residual. Tables by hand."""

from typing import Any

import pandas as pd
import pytest

from rankfall.rank.law.shown import clear
from rankfall.report.selection import chances
from rankfall.report.settings import differences, say_differ

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


def test_chance_is_a_mean_over_seeds_and_never_over_tasks() -> None:
    table = networks()
    table.loc[table.key == "C1", "chance"] = 0.7
    assert chances(table) == pytest.approx([0.4, 0.75])
    assert chances(table.drop(columns="chance"), table) == pytest.approx([0.4, 0.75])
    assert chances(table.assign(chance=None)) == []


# Seed 1 is rounding noise at layer 2; seed 2 has equal rows, which have no residual, from layer 3 on; seed 0 keeps all.
COURSES: dict[int, list[float | None]] = {
    0: [0.0, -0.1, -0.2, -0.3, -0.4],
    1: [0.0, -9.0, -16.0, -9.0, -0.5],
    2: [0.0, -1.0, -2.0, None, None],
}
TABLE = pd.DataFrame(
    [
        {"architecture": "net", "depth": 4, "seed": seed, "layer": layer, "log10_residual": value, "floor": (seed, layer) == (1, 2)}
        for seed, values in COURSES.items()
        for layer, value in enumerate(values)
    ]
).astype({"floor": "boolean"})  # fmt: skip


@pytest.mark.parametrize(
    ("seeds", "layers"), [([0], 5), ([0, 1], 2), ([0, 2], 3), ([0, 1, 2], 2)], ids=["whole", "noise", "equal rows", "both"]
)  # fmt: skip
def test_a_group_ends_where_its_first_network_does(seeds: list[int], layers: int) -> None:
    part = TABLE[TABLE.seed.isin(seeds)]
    kept = part[clear(part)]
    assert kept.groupby("seed").layer.apply(list).to_dict() == {seed: list(range(layers)) for seed in seeds}


def test_groups_are_apart() -> None:
    other = TABLE[TABLE.seed == 0].assign(architecture="other")
    both = pd.concat([TABLE, other], ignore_index=True)
    assert both[clear(both)].groupby("architecture").layer.max().to_dict() == {"net": 1, "other": 4}
    alone = both[clear(both, ["architecture", "seed"])]
    assert alone.groupby(["architecture", "seed"]).layer.max().tolist() == [4, 1, 2, 4]
