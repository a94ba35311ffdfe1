"""What an interactive chart of the page is: a table's rows, and what a reader may choose. A quantity declares its own in `chart.py` of its
folder, as `CHARTS`; a chart is there where its table is.

`lines`: y over x, a line a value of `line`, mean and deviation over seeds. `points`: one value a line.
`grid`: a colour for each pair of x and y.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rankfall.report.quantities import declarations_of

NETWORK = ("task", "training", "depth", "apart")  # what networks of one architecture differ in
MODEL = ("model", "phase", "definition", "text", "length", "dtype")  # what measurements of models differ in
COMPONENTS: dict[str, Any] = {  # a square for each way to weigh tokens and each position encoding
    "x": "position", "y": "normaliser", "x_title": "position encoding", "y_title": "normaliser", "kind": "grid", "line": "normaliser",
}  # fmt: skip
MENUS = {  # where a column's name does not say what is chosen
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


Ends = tuple[float | None, float | None]
SHARE: Ends = (0.0, 1.0)
POSITIVE: Ends = (0.0, None)


@dataclass(frozen=True)
class Level:
    """What numbers of a chart are compared with, such as chance: a `column` of the same rows, or one that the chart derives, or the same
    number of the rows `where`. `shared`: one for all lines, or one for each."""

    name: str
    column: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    shared: bool = True


@dataclass(frozen=True)
class Chart:
    """`line`: a column; `choose`: columns with a menu each, of which one value is shown; `where`: rows that it is drawn from; `most`: of
    these columns only the greatest value of each network; `derive`: columns that the table has not, and how each is made of it; `opening`:
    it may be the page's first picture; `place`: among those of its study, the lowest first."""

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
    scale: Literal["linear", "log", "symlog", "wide"] = (
        "linear"  # symlog: of logarithms, axes say 10^; wide: symlog or linear, as values are
    )
    value: str = ""  # of a grid: what the colour is
    value_title: str = ""
    named_by: str = ""  # the menu whose value says what y is
    start: Mapping[str, Any] = field(default_factory=dict)  # menus' first choice, where there is such a value
    within: Ends = (None, None)  # what is possible: no band goes beyond, and squares are coloured from end to end
    better: Literal["high", "low"] | None = None  # of a grid: the end that keeps more
    beside: tuple[Level, ...] = ()
    derive: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    opening: bool = False
    place: int = 1000
    study: str = ""  # one of STUDIES; by default that of its folder
    table: str = ""  # that of its folder

    @property
    def measured(self) -> str:
        """The column of its numbers."""
        return self.value or self.y

    @property
    def measured_title(self) -> str:
        return self.value_title or self.y_title


def charts() -> tuple[Chart, ...]:
    """Of every study and of modules of users, in the order of the page."""
    found: tuple[Chart, ...] = declarations_of("chart")
    return found


SHOWN = ("name", "study", "title", "text", "table", "x", "y", "x_title", "y_title", "kind", "line", "choose", "scale", "value",
         "value_title", "named_by", "start", "within", "better", "measured", "measured_title")  # fmt: skip


def describe(chart: Chart) -> dict[str, Any]:
    """For the page."""
    return {name: getattr(chart, name) for name in SHOWN}
