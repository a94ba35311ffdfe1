"""Panels of figures with a line for each architecture, and the architectures that each panel shows."""

from collections.abc import Mapping
from typing import Any

from rankfall.annotations import DataFrame, FacetGrid
from rankfall.errors import RankfallError
from rankfall.report.colours import colours
from rankfall.report.lines import lines
from rankfall.report.selection import among


def panels_of(table: DataFrame, figure: str, panels: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return title -> architectures for the requested panels; by default one panel with all architectures."""
    if not panels:
        return {"": sorted(str(name) for name in among(table, figure, "architecture", []).architecture.unique())}
    for title, names in panels.items():
        if not isinstance(names, list) or not names:
            raise RankfallError(f"figure {figure}: panels.{title}: {names!r} is not a list of architectures")
        among(table, figure, "architecture", names)
    return {str(title): [str(name) for name in names] for title, names in panels.items()}


def draw_panels(panels: Mapping[str, list[str]], table: DataFrame, x: str, y: str, **look: Any) -> FacetGrid:
    """Draw lines with bands of the architectures in these panels."""
    from pandas import concat

    parts = [table[table.architecture.isin(names)].assign(panel=title) for title, names in panels.items()]
    every = list(dict.fromkeys(name for names in panels.values() for name in names))
    place: dict[str, Any] = {"col": "panel", "col_order": list(panels)} if len(panels) > 1 else {"height": 2.6}
    return lines(concat(parts), x, y, "architecture", colours(every), **place | look)
