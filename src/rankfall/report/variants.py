"""The variants of an architecture, where the grid sets a part of it, and the settings that its networks were trained and measured at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rankfall.design import Architecture
from rankfall.report.labels import labels
from rankfall.report.schema import CELL_COLUMNS
from rankfall.report.schemas.scorecard import MADE_OF, OTHERS

if TYPE_CHECKING:
    from pandas import DataFrame, Series

DESIGN = [*MADE_OF, *OTHERS]
NOT_SETTING = {"key", "seed", "status", "reason", "architecture", *DESIGN}
SETTING = [column.name for column in CELL_COLUMNS if column.name not in NOT_SETTING and not column.provenance]
USUAL = {name: str(getattr(Architecture("usual"), name)) for name in DESIGN}


def placed(cells: DataFrame) -> DataFrame:
    """Cells with the number of their design among those of their name, and what it is called; and with their setting, as a label."""
    filled = cells[DESIGN].astype("string").fillna("")
    cells = cells.assign(design=filled.groupby(DESIGN, sort=False).ngroup(), variant="", trained=cells.epochs > 0)
    for _, part in cells.groupby("architecture"):
        if part.design.nunique() > 1:
            base = part.iloc[part.apply(usual, axis=1).argmax()]
            told = {column: labels(part[column].astype(str).unique()) for column in DESIGN}
            for _, own in part.groupby("design"):
                cells.loc[own.index, "variant"] = differing(base, own.iloc[0], told)
    return cells.assign(setting=named(cells))


def usual(cell: Series) -> int:
    """How many of a cell's parts are those of an architecture that names none."""
    return sum(str(cell[column]).partition("(")[0] == value for column, value in USUAL.items())


def differing(base: Series, one: Series, told: Mapping[str, Mapping[str, str]]) -> str:
    """What a cell has in place of the parts of `base`, in labels that tell all values of a part apart."""
    pairs = ((column, str(base[column]), str(one[column])) for column in told)
    return ", ".join(f"{column} {told[column][own]}" for column, usual, own in pairs if own != usual)


def named(cells: DataFrame) -> Series:
    """Task, training and depth; and what else differs between networks of one architecture that agree in these."""
    label = cells.task + ", " + cells.training + ", depth " + cells.depth.astype(str)
    others = [column for column in SETTING if column not in ("task", "training", "depth")]
    for column in others:
        value = cells[column].astype("string").fillna("none")
        varies = value.groupby([cells.architecture, cells.design, label]).nunique().groupby(level=2).max() > 1
        for name in varies.index[varies]:
            here = cells.index[label == name]
            what = "" if column == "task_component" else f"{column} "
            told = labels(value[here].unique())
            label[here] = [f"{name}, {what}{told[one]}" for one in value[here]]
    return label
