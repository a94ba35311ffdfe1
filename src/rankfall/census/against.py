"""Comparison of two censuses, one line per type and column: other inits, defaults or parts in another version of the library.

Times and memory differ in every run and do not count. A number counts as changed if it differs by more than rounding, since another
processor adds in another order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfall.errors import RankfallError

if TYPE_CHECKING:
    import pandas as pd

COST = ["seconds", "megabytes"]
ROUNDING = 1e-6  # relative
FORMAT = "%.8g"


def as_text(rows: Sequence[Any] | pd.DataFrame) -> pd.DataFrame:
    """Return a census as text with 8 digits, one row per type. Null is an empty field."""
    import pandas as pd

    def write_value(value: Any) -> str:
        if pd.isna(value):
            return ""
        return FORMAT % value if isinstance(value, float) else str(value)

    return pd.DataFrame(rows, dtype=object).drop(columns=COST, errors="ignore").map(write_value)


def write_census(path: Path, rows: Sequence[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    as_text(rows).to_csv(path, index=False, lineterminator="\n")


def read_census(path: Path) -> pd.DataFrame:
    """Read the rows of a census as text, from .csv or .parquet."""
    import pandas as pd

    if not path.is_file():
        raise RankfallError(f"--against {path}: there is no such file")
    if path.suffix == ".parquet":
        return as_text(pd.read_parquet(path, dtype_backend="pyarrow"))
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    if "type" not in table:
        raise RankfallError(
            f"--against {path} is not a census: it has no column 'type'; `rankfall census --out` writes one"
        )
    return table


def changes(before: pd.DataFrame, after: Sequence[Any], chosen: Sequence[str] = ()) -> list[str]:
    """Return the changes as lines, by type. `chosen`: only these types were measured, so others do not count as gone."""
    old, new = (frame.set_index("type").to_dict("index") for frame in (before, as_text(after)))
    versions = [", ".join(sorted({row.get("transformers", "") for row in rows.values()} - {""})) for rows in (old, new)]
    lines = [f"transformers: {versions[0]} -> {versions[1]}"] if versions[0] != versions[1] else []
    for kind in sorted({*old, *new}):
        if chosen and kind not in chosen:
            continue
        if kind not in new:
            lines.append(f"{kind}: gone")
        elif kind not in old:
            lines.append(f"{kind}: new, {new[kind]['outcome']}")
        else:
            lines += [f"{kind}: {line}" for line in find_changed_columns(old[kind], new[kind])]
    return lines


def find_changed_columns(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """Return a line for each column of one type that both censuses have and that changed."""
    lines = []
    for name, value in old.items():
        if name not in new or name in (*COST, "transformers"):
            continue
        other = new[name]
        try:
            before, after = float(value), float(other)
            same = math.isclose(before, after, rel_tol=ROUNDING, abs_tol=1e-15)
            times = f" (x {after / before:.3g})" if before else ""
        except ValueError:
            same, times = value == other, ""
        if not same:
            lines.append(f"{name} {value or 'null'} -> {other or 'null'}{times}")
    return lines
