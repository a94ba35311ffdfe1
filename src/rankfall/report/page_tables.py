"""Tables of documentation pages, in which each cell is a number that its row and its column define together.

    circle:
      head: network                                     # heading of the rows' names
      cells: {table: circle, value: sum meets}          # keys of a number, for all cells
      rows: {SAN: "architecture == 'SAN'", depth: [2, 6]}                  # a name and `where`, or a column and its values
      columns: {at 8: length == 8, loss: {value: mean loss, where: ...}}   # or a name and keys of a number
      missing: "-"                                      # text of a cell without rows, which is an error by default

The conditions `where` of row and column are combined. A name with ` | ` in it fills several columns.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from rankfall.errors import RankfallError


@dataclass(frozen=True)
class PageTable:
    """A table of a page. Its cells are names of numbers, by row and column."""

    name: str
    head: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    missing: str | None = None

    def write_markdown(self, cell: Callable[[str], str | None]) -> str:
        """Return the table as Markdown; `cell` writes a number, or returns None for a number without rows."""
        values = [[cell(name) for name in row] for row in self.cells]
        for row, found in [*zip(self.rows, values), *zip(self.columns, map(list, zip(*values)))]:
            if self.missing is None and None in found:
                raise RankfallError(f"table {self.name}: {row} lacks a number; `missing` sets the text of such cells")
            if not any(one is not None for one in found):
                raise RankfallError(f"table {self.name}: {row} has no number at all")
        width = (self.head.count(" | ") + 1) + len(self.columns)
        lines = [[self.head, *self.columns], ["---"] * width]
        for row, found in zip(self.rows, values):
            lines.append([row, *(str(self.missing) if one is None else one for one in found)])
        return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def page_table(name: str, given: Mapping[str, Any], about: str) -> tuple[PageTable, dict[str, dict[str, Any]]]:
    """Return the table `name`, and name -> keys of the number in each of its cells."""
    allowed = [field.name for field in fields(PageTable)][1:]
    unknown = [key for key in given if key not in allowed]
    lacking = [key for key in ("head", "cells", "rows", "columns") if not given.get(key)]
    if unknown or lacking:
        wrong = f"there is no key {unknown[0]!r}" if unknown else f"there is no {lacking[0]}"
        raise RankfallError(f"{about}: {wrong}; a table has {', '.join(allowed)}")
    rows, columns = dict(_lines(given["rows"])), dict(_lines(given["columns"]))
    numbers = {
        f"{name}: {row}, {column}": _merge(given["cells"], one, other)
        for row, one in rows.items()
        for column, other in columns.items()
    }
    cells = tuple(tuple(f"{name}: {row}, {column}" for column in columns) for row in rows)
    return PageTable(name, given["head"], tuple(rows), tuple(columns), cells, given.get("missing")), numbers


def _lines(given: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the names of rows, or of columns, and the keys that each adds."""
    for name, said in given.items():
        if isinstance(said, list):
            yield from ((str(value), {"where": f"{name} == {value!r}"}) for value in said)
        else:
            yield str(name), said if isinstance(said, Mapping) else {"where": str(said)}


def _merge(*parts: Mapping[str, Any]) -> dict[str, Any]:
    wheres = [f"({part['where']})" for part in parts if part.get("where")]
    return {key: value for part in parts for key, value in part.items()} | {"where": " and ".join(wheres)}
