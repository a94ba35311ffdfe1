"""Declare the table `circle` and what is shown of it: the points that a network reaches when it is applied repeatedly to its own output.

The figure: two points that a network moves along a circle, or towards each other: paths in the plane, and their distance.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from rankfall.annotations import Axes, DataFrame, Read
from rankfall.report.captions import describe_missing
from rankfall.report.colours import CHANCE, colour
from rankfall.report.labels import many
from rankfall.report.lines import POSITIVE, below, collect_labels, on, steps
from rankfall.report.looks import label
from rankfall.report.page.chart import Chart
from rankfall.report.page.question import list_names
from rankfall.report.published_numbers import read_published
from rankfall.report.schema import Table, declare_table
from rankfall.report.selection import among, choose, one_a_seed
from rankfall.report.style import WIDTH, Picture, canvas

if TYPE_CHECKING:
    from matplotlib.collections import PathCollection


def columns() -> Table:
    return declare_table(
        "circle",
        "each cell, step and token of the roll-out",
        """
        step int: applications of the network so far; at 0 the points are opposite on the circle
        token int: which of the two points
        x float nan: where it is; NaN once it is beyond all numbers
        y float nan: where it is
        distance float nan: from the other point
        error float nan: from the place on the circle where it should be after so many steps
        """,
        key="step token",
    )


CHARTS = (
    Chart(
        "circle",
        "Two points on a circle, moved again and again",
        "A network has learned to move points along a circle by a step, and is applied to its own output. Distance of two points that "
        "start opposite to each other: 0 where they have become one.",
        "step",
        "distance",
        "applications of the network",
        "distance of the two points",
        within=POSITIVE,
        place=100,
    ),
)


DATA = ["rank/circle/published.csv"]
PUBLISHED = read_published(__file__)


LIMITS = {"limit": (0.001, None)}
MARKERS = ("o", "s")  # first and second token
NAMED = 8  # architectures listed in the caption
MET = 0.05  # share of the initial distance below which the points have met


def figure(
    read: Read,
    *,
    training: str | None = None,
    tasks: list[str] = [],
    architectures: list[str] = [],
    seed: int | None = None,
    width: int | None = None,
    limit: float = 0.56,
    where: dict[str, Any] = {},
    columns: int = 5,
) -> Picture:
    """Draw a pair of panels per task and architecture, by default all of the most frequent training.

    The plane shows one seed at one width, by default the lowest. `where`: only these cells, by any column.
    """
    requested = {"training": training, "task": tasks, "architecture": architectures}
    table, whole, (training,) = choose(read("circle"), "circle", where, **requested)
    pairs = sorted(table[["task", "architecture"]].drop_duplicates().itertuples(index=False, name=None))
    one_a_seed(table, "circle", ["task", "architecture", "width"])
    columns = min(columns, len(pairs))
    rows = -(-len(pairs) // columns)
    wide = WIDTH if columns > 2 else 2.2 * columns + 1.0
    figure, axes = canvas(2 * rows, columns, wide, 3.3 * rows + 0.4, height_ratios=[1.2, 1.0] * rows)
    shown = int(among(table, "circle", "width", [] if width is None else [width]).width.min())
    of_seed = among(table, "circle", "seed", [] if seed is None else [seed])
    of_seed = of_seed[of_seed.width == shown]
    table = table.assign(ratio=table.distance / table.groupby(["key", "token"]).distance.transform("first"))
    ends = table[(table.token == 0) & (table.step == table.groupby("key").step.transform("max"))]
    # The seed with the median distance at the end; the lower one of an even number.
    nearest = ends[ends.index.isin(of_seed.index)].sort_values("ratio", kind="stable")
    first = nearest.groupby(["task", "architecture"]).seed.agg(lambda seeds: seeds.iloc[(len(seeds) - 1) // 2])
    widths = steps(sorted(table.width.unique()))
    scatter = None
    for number, (task, architecture) in enumerate(pairs):
        top, bottom = (axes[2 * (number // columns) + k][number % columns] for k in (0, 1))
        chosen = table[(table.task == task) & (table.architecture == architecture)]
        seed = first.get((task, architecture), -1)
        scatter = draw_plane(top, chosen[(chosen.seed == seed) & (chosen.width == shown)], limit) or scatter
        name = f"{label(architecture)}, " + (f"seed {seed}" if seed >= 0 else f"none at width {shown}")
        top.set_title(name if len({task for task, _ in pairs}) == 1 else f"{name}\n{label(task)}")
        palette = widths if len(widths) > 1 else {shown: colour(architecture)}
        look: dict[str, Any] = {"estimator": None, "units": "key", "errorbar": None, "marker": None, "alpha": 0.7}
        on(bottom, chosen[chosen.token == 0], "step", "ratio", "width", palette, **look)
        bottom.axhline(1.0, color=CHANCE, linestyle="--", linewidth=0.8, zorder=1)
        bottom.set(ylabel="distance of the points\nover that at the start" if number % columns == 0 else "")
    shown_panels = [axes[2 * (number // columns) + 1][number % columns] for number in range(len(pairs))]
    top_most = max(1.1, *(panel.get_ylim()[1] for panel in shown_panels))
    for panel in shown_panels:
        panel.set_ylim(0, top_most)
    for row in range(2):
        for unused in axes[-2 + row][len(pairs) - columns * (rows - 1) :]:
            unused.set_visible(False)
    handles = {f"width {name}": handle for name, handle in collect_labels(axes[1]).items() if len(widths) > 1}
    if scatter is not None:
        figure.colorbar(scatter, ax=[panel for row in axes for panel in row], label="step", shrink=0.5, aspect=40)
    below(figure, handles)
    last = count_meetings(ends)
    caption = (
        f"A network moves two points along a circle, again and again; training {label(training)}. Above: both points at width {shown}, for "
        "the seed with the median distance at the end, light to dark with time (circle and square: open at the start, filled at the end). "
        f"Below: their distance, a line for each of {many(table.seed.nunique(), 'seed')}. The points meet in {int(last.met.sum())} of "
        f"{int(last.roll_outs.sum())} roll-outs{count_by_architecture(last)}."
        f"{describe_missing(table, ['architecture', 'task', 'width'], whole=whole)}"
    )
    return Picture(figure, caption, last)


def count_meetings(end: DataFrame) -> DataFrame:
    """Count, by task, architecture and width, the roll-outs that end with both points in one place, with their distance from the circle."""
    end = end.assign(met=end.ratio < MET, gone=end.distance.isna())
    by = ["task", "architecture", "training", "width"]
    counts = end.groupby(by).agg(
        roll_outs=("met", "size"),
        met=("met", "sum"),
        gone=("gone", "sum"),
        median_ratio=("ratio", "median"),
        median_error=("error", "median"),
    )
    return counts.reset_index()


def count_by_architecture(last: DataFrame) -> str:
    """Write the counts of each architecture, and how many roll-outs are not finite."""
    counts = last.groupby("architecture")[["met", "roll_outs"]].sum()
    texts = [f"{row.met} of {row.roll_outs} of {label(row.Index)}" for row in counts.itertuples()]
    gone = int(last.gone.sum())
    beyond = f"; {many(gone, 'roll-out')} ended beyond all numbers, which cannot be drawn" if gone else ""
    return (f": {list_names(texts, NAMED)}" if len(texts) > 1 else "") + beyond


def draw_plane(panel: Axes, table: DataFrame, limit: float) -> "PathCollection | None":
    """Draw the positions of both tokens, without those outside the frame."""
    panel.set(xlim=(-limit, limit), ylim=(-limit, limit))
    panel.set_aspect("equal")
    if table.empty:
        return None
    turn = np.linspace(0, 2 * np.pi, 200)
    start = table[table.step == 0]
    radius = float(np.hypot(start.x, start.y).mean()) if len(start) else 0.0
    panel.plot(radius * np.cos(turn), radius * np.sin(turn), color="#d0d0d0", linewidth=1.0, zorder=0)
    ordered = table.sort_values("step")
    scatter = panel.scatter(ordered.x, ordered.y, c=ordered.step, cmap="viridis_r", s=5, linewidth=0, zorder=2)
    for marker, point in zip(MARKERS, start.sort_values("token").itertuples()):
        panel.plot([point.x], [point.y], marker, color="black", fillstyle="none", markersize=6, zorder=3)
    end = table[table.step == table.step.max()].sort_values("token", ascending=False)
    for (marker, fill, size), point in zip((("s", "black", 6), ("o", "white", 3.5)), end.itertuples()):
        panel.plot([point.x], [point.y], marker, color=fill, markeredgecolor="black", markersize=size, zorder=4)
    return scatter
