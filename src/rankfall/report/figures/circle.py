"""Two points that a network moves along a circle, or together: paths in the plane, time as colour, and their distance below."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rankfall.report.style import CHANCE, COLOURS, Picture, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

TABLES = ["circle"]
MARKERS = ("o", "s")  # first and second token
MET = 0.05  # of the distance at the start: closer than this counts as having met


def circle(
    read: "Callable[[str], DataFrame]",
    *,
    training: str = "published",
    tasks: list[str] = [],
    architectures: list[str] = [],
    seed: int = 0,
    width: int | None = None,
    limit: float = 0.56,
) -> Picture:
    """One column a task x architecture (all that the table has, unless named); the plane shows one seed at one width."""
    table = read("circle")
    table = table[(table.training == training) & (table.status == "done")]
    for column, names in (("task", tasks), ("architecture", architectures)):
        table = table[table[column].isin(names)] if names else table
    pairs = sorted(table[["task", "architecture"]].drop_duplicates().itertuples(index=False, name=None))
    columns = max(1, len(pairs))
    figure, axes = canvas(2, columns, 2.3 * columns + 0.8, 4.6, height_ratios=[1.15, 1.0])
    shown = width or (int(table.width.min()) if len(table) else 0)
    findings = []
    for j, (task, architecture) in enumerate(pairs):
        chosen = table[(table.task == task) & (table.architecture == architecture)]
        plane(axes[0][j], chosen[(chosen.seed == seed) & (chosen.width == shown)], limit)
        axes[0][j].set_title(architecture if len({one for one, _ in pairs}) == 1 else f"{architecture}\n{task}")
        apart(axes[1][j], chosen)
        axes[1][j].set_xlabel("step")
        findings.append(f"{task}, {architecture}: {finding(chosen)}")
    axes[1][0].set_ylabel("distance of the two points\nover that at the start")
    if pairs:
        axes[1][0].legend(loc="best", fontsize=7.5, title="width", title_fontsize=7.5)
    caption = (
        f"Roll-outs on the circle, training {training}. Top: both points (circle and square mark the start), light to dark with "
        f"time, at width {shown}, seed {seed}; the grey circle is where they should run. Bottom: their distance, line for the "
        f"median and band for the quartiles over {table.seed.nunique()} seeds. " + " ".join(findings)
    )
    return Picture(figure, caption)


def plane(panel: "Axes", table: "DataFrame", limit: float) -> None:
    """Both tokens' places, those outside the frame left out."""
    import numpy as np

    turn = np.linspace(0, 2 * np.pi, 200)
    start = table[table.step == 0]
    radius = float(np.hypot(start.x, start.y).mean()) if len(start) else 0.0
    panel.plot(radius * np.cos(turn), radius * np.sin(turn), color="#d0d0d0", linewidth=1.0, zorder=0)
    for token, one in table.groupby("token"):
        one = one.sort_values("step")
        panel.plot(one.x, one.y, color="#bbbbbb", linewidth=0.5, zorder=1)
        panel.scatter(one.x, one.y, c=one.step, cmap="viridis_r", s=5, linewidth=0, zorder=2)
        panel.plot(
            one.x.iloc[:1], one.y.iloc[:1], MARKERS[token % 2], color="black", fillstyle="none", markersize=6, zorder=3
        )
    panel.set_xlim(-limit, limit)
    panel.set_ylim(-limit, limit)
    panel.set_aspect("equal")


def apart(panel: "Axes", table: "DataFrame") -> None:
    """Distance over that at the start, a line a width."""
    one = table[table.token == 0]
    for colour, (width, part) in zip(COLOURS, one.groupby("width")):
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
