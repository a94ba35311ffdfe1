"""How every figure looks, and how it is saved: colours that the colour-blind can tell apart, lines with bands,
captions with numbers.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfall.disk import atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import Series

# Okabe & Ito's palette, in an order in which neighbours differ in lightness too.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000", "#B8A000")
WHOLE, CHANCE = "#222222", "#888888"
SETTINGS: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "svg.hashsalt": "rankfall",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class Picture:
    """A figure and the sentence that says what it shows, with its numbers computed from the same tables."""

    figure: "Figure"
    caption: str


def applied() -> AbstractContextManager[None]:
    """Within, what is drawn has our looks; outside, matplotlib is as it was."""
    import matplotlib

    return matplotlib.rc_context(SETTINGS)


def canvas(rows: int, columns: int, width: float, height: float, **options: Any) -> "tuple[Figure, list[list[Axes]]]":
    """A figure of rows x columns axes, without a display and without touching pyplot's global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, [list(row) for row in axes]


def band(
    axes: "Axes", x: "Series", mean: "Series", deviation: "Series", colour: str, label: str = "", **options: Any
) -> None:
    """A line with one standard deviation on both sides."""
    axes.plot(x, mean, color=colour, label=label or None, **options)
    axes.fill_between(x, mean - deviation, mean + deviation, color=colour, alpha=0.18, linewidth=0)


def palette(lines: int) -> list[Any]:
    """A colour for each line: a scale where there are more lines than colours that can be told apart."""
    import matplotlib
    import numpy as np

    return list(COLOURS if lines <= len(COLOURS) else matplotlib.colormaps["viridis"](np.linspace(0, 0.92, lines)))


def tower(power: int) -> str:
    """10 to the -(10 to the power), as a label."""
    return f"$10^{{-10^{{{power}}}}}$" if power > 2 else f"$10^{{-{10**power}}}$"


def spaced(first: int, last: int, most: int = 7) -> list[int]:
    """Round numbers from first to last, few enough to be read as labels of an axis."""
    step = next(
        step for size in range(9) for step in (10**size, 2 * 10**size, 5 * 10**size) if last - first < step * most
    )
    return [number for number in range(first, last + 1) if number % step == 0]


def save(picture: Picture, out: Path, caption: Path | None = None, made: Mapping[str, str] | None = None) -> None:
    """PNG and PDF side by side, the same bytes for the same data; the caption where the report looks for it. What they were made
    for is a comment at the caption's end, with digests of both pictures, so that no other picture can take their place unseen.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    record = dict(made or {})
    with applied():
        for path, metadata in ((out, {"Software": None}), (out.with_suffix(".pdf"), {"CreationDate": None})):
            drawn = BytesIO()
            picture.figure.savefig(drawn, format=path.suffix[1:], metadata=metadata)
            record[path.suffix[1:]] = hashlib.sha256(drawn.getvalue()).hexdigest()[:24]
            with atomic(path) as handle:
                handle.write(drawn.getvalue())
    if caption:
        with atomic(caption) as handle:
            comment = f"\n\n.. made: {json.dumps(record)}\n" if made else ""
            handle.write(f"{picture.caption}{comment}".encode())
