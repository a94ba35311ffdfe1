"""Lines of a figure that coincide, so that a reader sees only one of them; captions list them."""

from collections.abc import Iterator, Sequence
from typing import Any

from rankfall.annotations import DataFrame
from rankfall.report.looks import label

NEAR = 0.01  # share of the height of a panel: about the width of a line
NAMED = 4  # largest number of panels, and of groups of lines, that are listed


def coincide(
    table: DataFrame,
    line: str,
    x: str,
    y: str,
    panels: Sequence[str] = (),
    log: bool = False,
    span: float | None = None,
) -> str:
    """Return a sentence that lists coinciding lines, preceded by a space, or an empty string. `table`: rows of points, whose means are
    drawn; `span`: the height of a panel in units of `y` (with `log`, of its decadic logarithm), by default the range of all means."""
    import numpy as np

    means = table.assign(height=table[y].astype(float)).dropna(subset="height")
    means = means.assign(height=np.log10(means.height.where(means.height > 0))) if log else means
    means = means.groupby([*panels, line, x], observed=True).height.mean().dropna().reset_index()
    if means.empty:
        return ""
    near = NEAR * (span or float(means.height.max() - means.height.min()) or 1.0)
    found: dict[str, list[str]] = {}
    parts = means.groupby(list(panels), observed=True) if panels else [((), means)]
    for at, part in parts:
        for names in groups(part.pivot(index=x, columns=line, values="height"), near):
            found.setdefault(list_labels(names), []).append(", ".join(label(one) for one in at))
    if not found:
        return ""
    said = [f"{names}{where(places, len(list(parts)))}" for names, places in found.items()]
    more = f", and {len(said) - NAMED} more" if len(said) > NAMED else ""
    return f" On each other lie {'; '.join(said[:NAMED])}{more}."


def list_labels(names: Sequence[Any]) -> str:
    *first, last = map(label, names)
    return f"{', '.join(first)} and {last}"


def where(places: list[str], panels: int) -> str:
    """Return the panels in which lines coincide, in brackets; empty if these are all panels."""
    if len(places) == panels:
        return ""
    return f" ({'; '.join(places)})" if len(places) <= NAMED else f" (in {len(places)} of {panels} panels)"


def groups(heights: Any, near: float) -> Iterator[list[Any]]:
    """Yield groups of columns that are present at the same places and near each other at all of them."""
    left = list(heights.columns)
    together: list[list[Any]] = []
    for one in left:
        for group in together:
            other = heights[group[0]]
            same = (other.isna() == heights[one].isna()).all()
            if same and (other - heights[one]).abs().max() <= near:
                group.append(one)
                break
        else:
            together.append([one])
    yield from (group for group in together if len(group) > 1)
