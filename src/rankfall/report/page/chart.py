"""Interactive charts of the page: rows of a table, and the choices of a reader. A quantity declares its charts as `CHARTS` in `shown.py`
of its folder; the page has a chart if the run has its table.

`lines`: y over x with a line per value of `line`, mean and deviation over seeds. `points`: one value per line.
`grid`: a colour for each pair of x and y.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rankfall.report.lines import POSITIVE as POSITIVE
from rankfall.report.lines import SHARE as SHARE
from rankfall.report.lines import Bounds
from rankfall.report.quantities import declarations_of

NETWORK = ("task", "training", "depth", "apart")  # columns in which networks of one architecture differ
MODEL = ("model", "phase", "definition", "text", "length", "dtype")  # columns in which measurements of models differ
COMPONENTS: dict[str, Any] = {  # a square for each way to weigh tokens and each position encoding
    "x": "position", "y": "normaliser", "x_title": "position encoding", "y_title": "normaliser", "kind": "grid", "line": "normaliser",
}  # fmt: skip
MENUS = {  # labels of menus whose column names are unclear
    "apart": "other settings",
    "evaluation": "attention of a path",
    "paths": "number of paths",
    "sentinels": "special tokens",
    "phase": "weights",
    "definition": "what a variant leaves out",
    "length": "tokens of a text",
    "dtype": "number format",
    "which": "term",
    "of_head": "head",
    "alpha": "weight of the attention",
    "map": "way back",
    "mixer": "how tokens are mixed",
    "norm_place": "where norms stand",
    "loss": "map trained by",
    "candidates": "searched among",
    "distance": "nearest by",
    "kept_tokens": "tokens counted",
    "other": "compared with",
}


@dataclass(frozen=True)
class Level:
    """A level with which the numbers of a chart are compared, such as chance: a `column` of the same rows, which the chart may derive, or
    the same number in the rows `where`. `shared`: one level for all lines, otherwise one for each line."""

    name: str
    column: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    shared: bool = True


@dataclass(frozen=True)
class Chart:
    """A chart of the page. `line`: the column that names lines; `choose`: columns with a menu, of which one value is shown; `where`: the
    condition on its rows; `most`: columns of which only the greatest value of each network is kept; `derive`: additional columns -> how to
    compute them from the table; `opening`: whether it may be the page's first picture; `place`: the position in its study, lowest first."""

    name: str
    title: str
    text: str
    x: str
    y: str
    x_title: str
    y_title: str
    kind: Literal["lines", "points", "grid"] = "lines"
    line: str = "architecture"
    choose: tuple[str, ...] = NETWORK
    where: Mapping[str, Any] = field(default_factory=dict)
    most: tuple[str, ...] = ()
    # symlog: values are logarithms, and axes show 10^; wide: symlog or linear, depending on the values
    scale: Literal["linear", "log", "symlog", "wide"] = "linear"
    value: str = ""  # for a grid: the column that the colour shows
    value_title: str = ""
    named_by: str = ""  # the menu whose value names y
    start: Mapping[str, Any] = field(default_factory=dict)  # menu -> its initial value, if it exists
    within: Bounds = (None, None)  # possible range: bands are clipped to it, and the colours of a grid span it
    better: Literal["high", "low"] | None = None  # for a grid: the end that keeps more
    beside: tuple[Level, ...] = ()
    derive: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    opening: bool = False
    place: int = 1000
    study: str = ""  # one of STUDIES; by default the study of its folder
    table: str = ""  # by default the table of its folder

    @property
    def measured(self) -> str:
        """The column of its numbers."""
        return self.value or self.y

    def fields(self) -> dict[str, Any]:
        """Return the fields that the page's script needs."""
        plain = {name: value for name, value in vars(self).items() if name not in ("derive", "beside")}
        return plain | {"measured": self.measured, "measured_title": self.value_title or self.y_title}


def charts() -> tuple[Chart, ...]:
    """Return the charts of all studies and of users' modules, in the order of the page."""
    return declarations_of("chart")
