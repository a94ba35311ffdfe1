"""A table for looking up many numbers, which caches conditions on columns and the groups of rows of each network."""

from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np

from rankfall.annotations import DataFrame, Series
from rankfall.filters import matches_in_table, parts
from rankfall.report.schema import CELL_COLUMNS

CELL = {column.name for column in CELL_COLUMNS}


class Searched:
    """A table with cached conditions and groups. A failed or diverged cell has a single row with the columns of the cell only, and meets
    every condition on other columns."""

    def __init__(self, frame: DataFrame) -> None:
        # Texts become categories, because the same few columns are searched for every number.
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

    def find_rows(self, asked: Iterable[tuple[str, str]]) -> np.ndarray:
        """Return the positions of the rows that meet all conditions (column, wanted)."""
        fits = (self.frame.status != "missing").to_numpy() if self.of_cells else np.ones(len(self.frame), bool)
        for name, wanted in asked:
            fits = fits & self.met(name, wanted)
        return np.flatnonzero(fits)

    def _met(self, name: str, wanted: str) -> np.ndarray:
        """Return which rows have one of `value|value` in a column."""
        values = self.frame[name]
        fits: np.ndarray = values.isin([one for one in values.dropna().unique() if reads(one, wanted)]).to_numpy()
        return fits | self.unfinished if self.of_cells and name not in CELL else fits

    def _column(self, name: str) -> Series:
        """Return a column as floats, with NaN for nulls."""
        return self.frame[name].astype("Float64").astype(float)

    def _groups(self, keys: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of each row's group of equal `keys`, in the order of the keys, and the position of each group's first row."""
        number = self.frame.groupby(list(keys), dropna=False, observed=True).ngroup().to_numpy()
        return number, np.unique(number, return_index=True)[1]

    def means(self, rows: np.ndarray, number: Series, keys: Sequence[str]) -> Series:
        """Return group -> mean over its rows among `rows`; NaN if one of them has no number."""
        grouped = number.iloc[rows].groupby(self.groups(tuple(keys))[0][rows])
        return grouped.mean().where(grouped.count() == grouped.size())

    def name_means(self, means: Series, keys: Sequence[str]) -> DataFrame:
        """Return the means with the keys of their groups; `network` is the position of the group's first row."""
        first = self.groups(tuple(keys))[1][means.index]
        return self.frame[list(keys)].iloc[first].set_axis(means.index).assign(number=means.to_numpy(), network=first)


def reads(found: Any, wanted: str) -> bool:
    """Return whether a cell of a table matches one of `value|value`."""
    text = write_cell(found).replace('"', "")
    return any(matches_in_table(text, one) for one in wanted.split("|"))


def equals(found: Any, wanted: str) -> bool:
    """Return whether a cell of a table equals one of `value|value`, each with all its options; an option `any` matches any value."""
    (name, options), texts = _exactly(write_cell(found)), wanted.split("|")
    return any(
        name == other
        and options.keys() == chosen.keys()
        and all(chosen[key] in ("any", options[key]) for key in chosen)
        for other, chosen in map(_exactly, texts)
    )


def _exactly(text: str) -> tuple[Any, dict[str, Any]]:
    """Return the name and options of a component; texts of numbers are converted."""
    name, options = parts(text.replace('"', ""))
    return _number(name), {key: _number(option) for key, option in options.items()}


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def write_cell(value: Any) -> str:
    """Return a cell of a table in the notation of published.csv. Nullable integers arrive as floats and are written as integers."""
    import pandas as pd

    if pd.isna(value):
        return "null"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
