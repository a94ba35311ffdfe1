"""Panels of a figure that has a line for each architecture: which architectures each shows, in which colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rankfall.errors import RankfallError
from rankfall.report.selection import among

if TYPE_CHECKING:
    from pandas import DataFrame


def panels_of(table: DataFrame, figure: str, panels: Mapping[str, Any]) -> dict[str, list[str]]:
    """Title -> architectures, as asked for; one panel with all of them if nothing is."""
    if not panels:
        return {"": sorted(str(name) for name in among(table, figure, "architecture", []).architecture.unique())}
    for title, names in panels.items():
        if not isinstance(names, list) or not names:
            raise RankfallError(f"figure {figure}: panels.{title}: {names!r} is not a list of architectures")
        among(table, figure, "architecture", names)
    return {str(title): [str(name) for name in names] for title, names in panels.items()}
