"""The measure `reproduction`: every published number and ours, with the deviation.

The published numbers are facts in the folders of quantities, `published.csv` (`report/published_numbers.py`), each with its source, the
setting at which it was measured, and our corresponding rows (`where`). Some are about a difference (`less`) or a ratio (`over`) of two
selections of rows, paired within a network: paths against the chance of the same cells, one variant against another.

Ours is the mean over seeds of each seed's mean. A seed has failed if it has no finite number, or if its network did not finish training or
left the bounds (`within`: beyond the frame of the published picture). It is counted, and no comparison with a failed seed holds. A
published number that nothing in the run measures keeps its row, without our value. `sense` says how ours should compare:

    equal               within `tolerance`; for a curve's point three of its published deviations over samples, or 0.02 where that is
                        more, but never more than a fifth of the value
    magnitude           within `tolerance` decades; for values below 0.05, where an absolute tolerance would let 0 pass. 0.3, a factor of
                        two: where these curves fall, neighbouring layers are a factor of four or more apart
    floor               at most `tolerance`: the published value (2e-7) is rounding of float32 and means no more than that; 1e-6
    above, below        than the published, to within `tolerance`
    all above, below    the same for each seed: where runs end in one of two ways, a mean would hide those that end in the other
"""

import math
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from rankfall.annotations import DataFrame, Series
from rankfall.errors import RankfallError
from rankfall.filters import as_number, matches_in_table, parts
from rankfall.measure.context import Context
from rankfall.report.published_numbers import PAPER, published_numbers
from rankfall.report.schema import CELL_COLUMNS, MODEL_COLUMNS

NEEDS = "tables"
TABLES = ["cells"]  # further tables with published numbers are read if the run makes them
FINDS = ["published"]
# Columns that distinguish networks, in tables of cells and of models: networks that differ in one of them are never averaged.
SPEC = {column.name for column in CELL_COLUMNS if not column.provenance} - {"key", "seed", "status", "reason"}
MODEL = {column.name for column in MODEL_COLUMNS} - {"seed"}


def reproduction(context: Context) -> list[dict[str, Any]]:
    """Return a row for each published number and setting. A table that the run does not make is None."""
    numbers = list(published_numbers())
    tables = {name: context.table(name) for name in dict.fromkeys(value["table"] for value in numbers)}
    searched = {name: Searched(frame) for name, frame in tables.items() if frame is not None}
    return [row for value in numbers for row in place_beside(value, searched.get(value["table"]))]


def place_beside(value: dict[str, Any], ours: "Searched | None") -> list[dict[str, Any]]:
    """Return one row for each of our settings, or one row without ours."""
    kept = ("name", "source", *PAPER, "place", "what", "kind", "sense", "published", "tolerance")
    row = {name: value[name] for name in kept}
    numbers = None if ours is None else compute_values(ours, value)
    if ours is None or numbers is None or not len(numbers):
        empty = dict.fromkeys(("ours", "deviation", "difference", "at_published", "holds"))
        return [row | empty | {"setting": "", "seeds": 0, "held": 0, "failed": 0}]
    keys = [name for name in numbers if name not in ("seed", "number", "network")]
    by = [name for name in value["by"].split(";") if name in keys]
    setting = ours.groups(tuple(keys))[0][numbers.network]
    if len(numbers[by].drop_duplicates()) < len(set(setting)):
        by += [name for name in keys if numbers[name].nunique(dropna=False) > 1 and name not in by]
    rows: dict[str, dict[str, Any]] = {}
    for _, part in numbers.groupby(setting):
        first = part.iloc[0]
        result = row | verdict(part.number, row["published"], value["sense"], row["tolerance"])
        result["at_published"] = all(equals(first.get(name), wanted) for name, wanted in conditions(value["at"]))
        texts = {name: write_setting(name, result) for name, result in first[by].dropna().items()}
        result["setting"] = ", ".join(texts.values())
        but_least = ", ".join(text for name, text in texts.items() if name != value["least"])
        rows[but_least] = min(
            result, rows.get(but_least, result), key=lambda row: (not row["failed"], row["ours"] or 0.0)
        )
    return list(rows.values())


def verdict(number: Series, published: float, sense: str, tolerance: float) -> dict[str, Any]:
    """Return mean, deviation and failures over the seeds of one setting."""
    finite = number.dropna()
    ours = float(finite.mean()) if len(finite) else None
    held = [holds(value, published, sense, tolerance) for value in finite]
    as_claimed = ours is not None and (
        all(held) if sense.startswith("all ") else holds(ours, published, sense, tolerance)
    )
    return {
        "ours": ours,
        "deviation": float(finite.std(ddof=1)) if len(finite) > 1 else None,
        "seeds": len(finite),
        "held": sum(held),
        "failed": len(number) - len(finite),
        "difference": None if ours is None else ours - published,
        "holds": as_claimed and len(finite) == len(number),
    }


def compute_values(ours: "Searched", value: dict[str, Any]) -> DataFrame:
    """Return a number for every network and seed, NaN if it failed: the mean of the selection, minus or divided by that of another
    selection. `network` is a row of the network in the table."""
    wanted = conditions(value["where"])
    by = value["by"].split(";")
    changed = dict(conditions(value["less"] or value["over"]))
    columns = list(ours.frame)
    missing = {*dict(wanted), *by, *changed, *dict(conditions(value["within"])), value["column"]} - set(columns)
    if missing:
        raise RankfallError(
            f"published value {value['name']!r}: table {value['table']} has no column {', '.join(sorted(missing))}"
        )
    spec = SPEC if ours.of_cells else MODEL
    keys = tuple(name for name in columns if name in spec or name in by or name == "seed")
    means = ours.means(wanted, keys, value)
    first = ours.groups(keys)[1][means.index]
    numbers = ours.frame[list(keys)].iloc[first].set_axis(means.index).assign(number=means.to_numpy(), network=first)
    if not changed:
        return numbers
    # The other selection has the same conditions except those that it states. An empty condition accepts any value of a column.
    wanted = [condition for condition in wanted if condition[0] not in changed] + [
        condition for condition in changed.items() if condition[1]
    ]
    shared = tuple(name for name in keys if name not in changed)
    other = ours.means(wanted, shared, value)
    at = ours.groups(shared)[0][numbers.network]
    paired = np.isin(at, other.index)
    paired_rows, less = numbers[paired], other[at[paired]].to_numpy()
    number = paired_rows.number - less if value["less"] else paired_rows.number / less
    return paired_rows.assign(number=number.where(number.abs() < math.inf))


def conditions(text: str) -> list[tuple[str, str]]:
    """Parse `column=value;column=value`. A component is written with the options that count: `task_component=circle(skip=none)`."""
    return [(name, wanted) for name, _, wanted in (pair.partition("=") for pair in text.split(";") if pair)]


def write_setting(column: str, value: Any) -> str:
    """Write a column of a setting as text. For a task, write only the options that distinguish tasks of its kind."""
    if column != "task_component":
        return f"{column}={write_cell(value)}"
    name, options = parts(value)
    return ", ".join(
        [name] + [f"{key}={options[key]}".replace('"', "") for key in ("text", "train", "length") if key in options]
    )


def holds(ours: float, published: float, sense: str, tolerance: float) -> bool:
    """Return whether our number relates to the published one as `sense` says."""
    match sense.removeprefix("all "):
        case "equal":
            return abs(ours - published) <= tolerance
        case "magnitude":
            return ours > 0 and abs(math.log10(ours / published)) <= tolerance
        case "floor":
            return ours <= tolerance
        case "above":
            return ours > published - tolerance
    return ours < published + tolerance


CELL = {column.name for column in CELL_COLUMNS}


class Searched:
    """A table with cached conditions and groups. A failed or diverged cell has a single row with the columns of the cell only, and meets
    every condition on other columns."""

    def __init__(self, frame: DataFrame) -> None:
        # Texts become categories, because the same few columns are searched for every number.
        self.frame = frame.astype(dict.fromkeys(frame.select_dtypes(["object", "string"]), "category"))
        self.of_cells = "status" in frame
        self.unfinished = (frame.status != "done").to_numpy() if self.of_cells else np.zeros(len(frame), bool)
        self.known = (frame.status != "missing").to_numpy() if self.of_cells else np.ones(len(frame), bool)
        self.met = cache(self._met)
        self.groups = cache(self._groups)

    def _met(self, name: str, wanted: str) -> np.ndarray:
        """Return which rows have one of `value|value` in a column."""
        values = self.frame[name]
        fits: np.ndarray = values.isin([value for value in values.dropna().unique() if reads(value, wanted)]).to_numpy()
        return fits if name in CELL else fits | self.unfinished

    def column(self, name: str) -> Series:
        """Return a column as floats, with NaN for nulls."""
        return self.frame[name].astype("Float64").astype(float)

    def _groups(self, keys: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of each row's group of equal `keys`, in the order of the keys, and the position of each group's first row."""
        number = self.frame.groupby(list(keys), dropna=False, observed=True).ngroup().to_numpy()
        return number, np.unique(number, return_index=True)[1]

    def means(self, wanted: Iterable[tuple[str, str]], keys: tuple[str, ...], value: dict[str, Any]) -> Series:
        """Return group of equal `keys` -> mean over the rows that meet all conditions (column, wanted), NaN if a row has no number or is
        out of bounds."""
        number = self.column(value["column"])
        finite = number.abs() < math.inf
        for name, limit in conditions(value["within"]):
            finite &= self.column(name).abs() <= float(limit)
        rows = np.flatnonzero(np.logical_and.reduce([self.known, *(self.met(*condition) for condition in wanted)]))
        grouped = number.where(finite).iloc[rows].groupby(self.groups(keys)[0][rows])
        return grouped.mean().where(grouped.count() == grouped.size())


def reads(cell: Any, wanted: str) -> bool:
    """Return whether a cell of a table matches one of `value|value`."""
    text = write_cell(cell).replace('"', "")
    return any(matches_in_table(text, pattern) for pattern in wanted.split("|"))


def equals(cell: Any, wanted: str) -> bool:
    """Return whether a cell of a table equals one of `value|value`, each with all its options; an option `any` matches any value."""
    (name, options), texts = _exactly(write_cell(cell)), wanted.split("|")
    return any(
        name == other
        and options.keys() == chosen.keys()
        and all(chosen[key] in ("any", options[key]) for key in chosen)
        for other, chosen in map(_exactly, texts)
    )


def _exactly(text: str) -> tuple[Any, dict[str, Any]]:
    """Return the name and options of a component; texts of numbers are converted."""
    name, options = parts(text.replace('"', ""))
    return as_number(name), {key: as_number(option) for key, option in options.items()}


def write_cell(value: Any) -> str:
    """Return a cell of a table in the notation of published.csv. Nullable integers arrive as floats and are written as integers."""
    import pandas as pd

    if pd.isna(value):
        return "null"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
