"""Two points that a network moves along a circle, or towards each other: paths in the plane, time as colour, and their distance below."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rankfall.report.selection import among, finished, left_out, one_a_seed, one_of
from rankfall.report.style import CHANCE, Picture, canvas, palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from pandas import DataFrame

TABLES = ["circle"]
MARKERS = ("o", "s")  # first and second token
MET = 0.05  # of the distance at the start: closer than this counts as having met


def circle(
    read: "Callable[[str], DataFrame]",
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
    """A pair of panels a task x architecture (all that the table has of the commonest training, unless named); the plane shows one
    seed at one width, the lowest. `where`: only these cells, by any column."""
    whole = finished(read("circle"), "circle", where)
    table, training = one_of(whole, "circle", "training", training)
    for column, names in (("task", tasks), ("architecture", architectures)):
        table = among(table, "circle", column, names)
    pairs = sorted(table[["task", "architecture"]].drop_duplicates().itertuples(index=False, name=None))
    one_a_seed(table, "circle", ["task", "architecture", "width"])
    columns = min(columns, len(pairs))
    lines = -(-len(pairs) // columns)
    figure, axes = canvas(2 * lines, columns, 2.2 * columns + 1.3, 4.4 * lines, height_ratios=[1.2, 1.0] * lines)
    shown = int(among(table, "circle", "width", [] if width is None else [width]).width.min())
    seed = int(among(table, "circle", "seed", [] if seed is None else [seed]).seed.min())
    findings = []
    for number, (task, architecture) in enumerate(pairs):
        top, bottom = (axes[2 * (number // columns) + k][number % columns] for k in (0, 1))
        chosen = table[(table.task == task) & (table.architecture == architecture)]
        drawn = plane(top, chosen[(chosen.seed == seed) & (chosen.width == shown)], limit)
        top.set_title(architecture if len({one for one, _ in pairs}) == 1 else f"{architecture}\n{task}")
        apart(bottom, chosen)
        bottom.set_xlabel("step")
        if number % columns == 0:
            bottom.set_ylabel("distance of the points\nover that at the start")
        findings.append(f"{task}, {architecture}: {finding(chosen)}")
    for row in range(2):
        for left in axes[-2 + row][len(pairs) - columns * (lines - 1) :]:
            left.set_visible(False)
    axes[1][0].legend(loc="best", fontsize=7.5, title="width", title_fontsize=7.5)
    figure.colorbar(drawn, ax=[panel for row in axes for panel in row], label="step", shrink=0.5, aspect=40)
    caption = (
        f"Roll-outs on the circle, training {training}. Top: both points (circle and square mark the start), light to dark with "
        f"time, at width {shown}, seed {seed}; the grey circle is where they should run. Bottom: their distance, line for the "
        f"median and band for the quartiles over {table.seed.nunique()} seeds. "
        + left_out(whole, table)
        + " ".join(findings)
    )
    return Picture(figure, caption)


def plane(panel: "Axes", table: "DataFrame", limit: float) -> "PathCollection":
    """Both tokens' places, those outside the frame left out."""
    import numpy as np

    turn = np.linspace(0, 2 * np.pi, 200)
    start = table[table.step == 0]
    radius = float(np.hypot(start.x, start.y).mean()) if len(start) else 0.0
    panel.plot(radius * np.cos(turn), radius * np.sin(turn), color="#d0d0d0", linewidth=1.0, zorder=0)
    ordered = table.sort_values("step")
    drawn = panel.scatter(ordered.x, ordered.y, c=ordered.step, cmap="viridis_r", s=5, linewidth=0, zorder=2)
    for marker, one in zip(MARKERS, start.sort_values("token").itertuples()):
        panel.plot([one.x], [one.y], marker, color="black", fillstyle="none", markersize=6, zorder=3)
    panel.set_xlim(-limit, limit)
    panel.set_ylim(-limit, limit)
    panel.set_aspect("equal")
    return drawn


def apart(panel: "Axes", table: "DataFrame") -> None:
    """Distance divided by that at the start, one line per width."""
    one = table[table.token == 0]
    for colour, (width, part) in zip(palette(one.width.nunique()), one.groupby("width")):
        ratio = part.pivot_table(index="step", columns="seed", values="distance")
        ratio = ratio / ratio.iloc[0]
        middle = ratio.quantile(0.5, axis=1)
        panel.plot(ratio.index, middle, color=colour, label=str(width))
        panel.fill_between(
            ratio.index,
            ratio.quantile(0.25, axis=1),
            ratio.quantile(0.75, axis=1),
            color=colour,
            alpha=0.18,
            linewidth=0,
        )
    panel.axhline(1.0, color=CHANCE, linestyle="--", linewidth=0.8)
    panel.set_ylim(0, 2)


def finding(table: "DataFrame") -> str:
    """How many roll-outs end with both points in one place, and how far off the circle they are."""
    last = table[(table.step == table.step.max()) & (table.token == 0)]
    first = table[(table.step == 0) & (table.token == 0)].set_index("key").distance
    ratio = last.set_index("key").distance / first
    error = last.error.median()
    return (
        f"met in {int((ratio < MET).sum())} of {len(ratio)} roll-outs, median distance {ratio.median():.2f} of that at the "
        f"start, median error {error:.2f}."
    )
