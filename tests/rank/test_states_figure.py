"""Figures of states and attention weights: drawn from rows of real networks, by layer and by length, with the numbers of the rows."""

from pathlib import Path
from typing import Any

import pytest
from helpers import by_member, cells
from one_stack import stack

from rankfall import components
from rankfall.errors import RankfallError
from rankfall.report import style, tables
from rankfall.report.rows import cell_columns


def rows_of(measure: str, name: str, **architecture: Any) -> list[dict[str, Any]]:
    context = stack(members=2, **architecture)
    found = []
    for row in by_member(components.load("measure", measure), context):
        cell = cells(architecture={"depth": 2, "heads": 2, "width": 8} | architecture, grid={"seed": row["member"]})[0]
        about = cell_columns(cell, {"status": "done", "reason": "", "device": "cpu", "stack": "s"})
        found.append(about | {"architecture": name} | {key: value for key, value in row.items() if key != "member"})
    return found


@pytest.mark.long
@pytest.mark.parametrize(("measure", "quantity"), [("states", "cosine"), ("attention_weights", "entropy")])
def test_means_are_those_of_the_rows(tmp_path: Path, measure: str, quantity: str) -> None:
    rows = rows_of(measure, "bare", residual="none") + rows_of(measure, "skip", residual="add")
    longer = [
        row | {"tokens": 10, "task": "longer", "key": row["key"][::-1], "value": (row["value"] or 0) / 2}
        for row in rows
    ]
    tables.write(measure, rows + longer, tmp_path / "table.parquet")

    def read(wanted: str) -> Any:
        return tables.read_frame(tmp_path / "table.parquet", wanted)

    figure = components.load("figure", measure)
    with style.apply_style():
        by_layer, by_length = figure(read), figure(read, x="tokens", panels=[])
    chosen = [
        row["value"]
        for row in rows
        if (row["quantity"], row["left_out"], row["layer"], row["architecture"]) == (quantity, "nothing", 2, "skip")
        and row.get("attention_head") is None
    ]
    assert len(chosen) == 2
    for picture, about in ((by_layer, {"layer": 2, "panel": "sorting"}), (by_length, {"tokens": 5})):
        numbers = picture.numbers
        assert numbers is not None
        for column, value in {**about, "line": "skip"}.items():
            numbers = numbers[numbers[column] == value]
        (mean,) = numbers["mean"]
        assert mean == pytest.approx(sum(chosen) / 2)
    assert "2 seeds" in by_layer.caption
    assert ("in all" in by_length.caption) == (quantity == "entropy"), by_length.caption
    with pytest.raises(RankfallError, match="'leyer' is not a column"):
        figure(read, x="leyer")
