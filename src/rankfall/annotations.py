"""Types of libraries that take long to import, for annotations only: at run time each of them is `Any`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame, Series
    from seaborn import FacetGrid
else:
    Axes = DataFrame = FacetGrid = Figure = Series = Any

Read = Callable[[str], DataFrame]  # name of a table -> the table, as figures receive it

__all__ = ["Axes", "DataFrame", "FacetGrid", "Figure", "Read", "Series"]
