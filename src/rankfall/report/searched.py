"""A table in which many numbers are looked up: what is asked of a column, and which rows are of one network, is found once for all."""

from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np

from rankfall.annotations import DataFrame, Series
from rankfall.filters import matches_in_table, parts
from rankfall.report.schema import CELL_COLUMNS

CELL = {column.name for column in CELL_COLUMNS}


class Searched:
    """A cell that failed or diverged has one row, with its labels only: it meets every condition on what it has no labels of."""

    def __init__(self, frame: DataFrame) -> None:
        # Texts as categories: the same few columns are searched for every number.
        self.frame = frame.astype(dict.fromkeys(frame.select_dtypes(["object", "string"]), "category"))
        self.met = cache(self._met)
        self.column = cache(self._column)
        self.groups = cache(self._groups)

    @cached_property
    def of_cells(self) -> bool:
        return "status" in self.frame

    @cached_property
    def unfinished(self) -> np.ndarray:
        return (self.frame.status != "done").to_numpy()

    def rows(self, asked: Iterable[tuple[str, str]]) -> np.ndarray:
        """The places of the rows that meet all conditions (column, wanted)."""
        fits = (self.frame.status != "missing").to_numpy() if self.of_cells else np.ones(len(self.frame), bool)
        for name, wanted in asked:
            fits = fits & self.met(name, wanted)
        return np.flatnonzero(fits)

    def _met(self, name: str, wanted: str) -> np.ndarray:
        """Which rows have in a column one of `value|value`."""
        values = self.frame[name]
        fits: np.ndarray = values.isin([one for one in values.dropna().unique() if reads(one, wanted)]).to_numpy()
        return fits | self.unfinished if self.of_cells and name not in CELL else fits

    def _column(self, name: str) -> Series:
        """A column's numbers, NaN where there is none."""
        return self.frame[name].astype("Float64").astype(float)

    def _groups(self, keys: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        """The number of each row's group of equal `keys`, in the order of these, and the place of each group's first row."""
        number = self.frame.groupby(list(keys), dropna=False, observed=True).ngroup().to_numpy()
        return number, np.unique(number, return_index=True)[1]

    def means(self, rows: np.ndarray, number: Series, keys: Sequence[str]) -> Series:
        """Group -> mean over its rows among these, NaN where one of them has no number."""
        grouped = number.iloc[rows].groupby(self.groups(tuple(keys))[0][rows])
        return grouped.mean().where(grouped.count() == grouped.size())

    def name_means(self, means: Series, keys: Sequence[str]) -> DataFrame:
        """The means beside their groups' keys; `network` is the place of a row of the group."""
        first = self.groups(tuple(keys))[1][means.index]
        return self.frame[list(keys)].iloc[first].set_axis(means.index).assign(number=means.to_numpy(), network=first)


def reads(found: Any, wanted: str) -> bool:
    """Whether a cell of a table is one of `value|value`."""
    text = write_cell(found).replace('"', "")
    return any(matches_in_table(text, one) for one in wanted.split("|"))


def equals(found: Any, wanted: str) -> bool:
    """Whether a cell of a table is exactly one of `value|value`, each with all its options; an option that is `any` may have any value."""
    (name, options), texts = _exactly(write_cell(found)), wanted.split("|")
    return any(
        name == other
        and options.keys() == chosen.keys()
        and all(chosen[key] in ("any", options[key]) for key in chosen)
        for other, chosen in map(_exactly, texts)
    )


def _exactly(text: str) -> tuple[Any, dict[str, Any]]:
    """A component's name and options, or a number."""
    name, options = parts(text.replace('"', ""))
    return _number(name), {key: _number(option) for key, option in options.items()}


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def write_cell(value: Any) -> str:
    """A cell of a table as the file of facts writes it: a nullable integer arrives as a float."""
    import pandas as pd

    if pd.isna(value):
        return "null"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
