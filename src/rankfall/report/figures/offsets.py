"""Learned terms by offset, one row a task and architecture: the bias B and the factors C, as matrices of one head and as a line a head."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rankfall.report.selection import among, finished, left_out, one_of
from rankfall.report.style import CHANCE, Picture, canvas, palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

TABLES = ["offsets"]
TITLES = {"B": "bias B of scores", "C": "factors C of weights"}
NEUTRAL = {"B": 0.0, "C": 1.0}  # what each starts from, and without effect


def offsets(
    read: "Callable[[str], DataFrame]",
    *,
    training: str | None = None,
    architectures: list[str] = [],
    seed: int | None = None,
    where: dict[str, Any] = {},
) -> Picture:
    """One seed, the lowest unless named; the matrix is that of the head whose values differ most. `where`: only these cells, by any
    column."""
    whole = finished(read("offsets"), "offsets", where)
    table, training = one_of(whole, "offsets", "training", training)
    table = among(table, "offsets", "architecture", architectures)
    seed = int(among(table, "offsets", "seed", [] if seed is None else [seed]).seed.min())
    one = table[(table.seed == seed) & table.layer.isna()]
    cells = sorted(one[["task", "architecture", "key"]].drop_duplicates().itertuples(index=False, name=None))
    kinds = [which for which in TITLES if (one.which == which).any()]
    figure, axes = canvas(len(cells), 2 * len(kinds), 2.9 * 2 * len(kinds), 2.5 * len(cells) + 0.3)
    for row, (task, architecture, key) in zip(axes, cells):
        for column, which in enumerate(kinds):
            part = one[(one.key == key) & (one.which == which)]
            left, right = row[2 * column : 2 * column + 2]
            if part.empty:
                left.set_visible(False)
                right.set_visible(False)
                continue
            lines(left, part, which)
            left.set_title(f"{task}, {architecture}: {TITLES[which]}", fontsize=8.5)
            matrix(right, part, which)
    spans = [
        f"{task}, {architecture}: {which} from {part.value.min():.2f} to {part.value.max():.2f}"
        for (task, architecture, which), part in table.groupby(["task", "architecture", "which"])
    ]
    caption = (
        f"What networks have learned about each offset i - j, training {training}: lines are heads of seed {seed}, shared by all layers "
        "(dashed: what has no effect), the matrix is that of the head whose values differ most. "
        + left_out(whole, table, ("task", "architecture", "training"))
        + f"Over all heads and {table.seed.nunique()} seeds: {'; '.join(spans)}."
    )
    return Picture(figure, caption)


def lines(panel: "Axes", part: "DataFrame", which: str) -> None:
    panel.axhline(NEUTRAL[which], color=CHANCE, linestyle="--", linewidth=0.8)
    heads = sorted(part.of_head.unique())
    for colour, head in zip(palette(len(heads)), heads):
        line = part[part.of_head == head].sort_values("offset")
        panel.plot(line.offset, line.value, color=colour, linewidth=1.1)
    panel.set_xlabel("offset i - j")


def matrix(panel: "Axes", part: "DataFrame", which: str) -> None:
    """The Toeplitz matrix of one head, colours symmetric around what has no effect."""
    spread = part.groupby("of_head").value.std()
    head = spread.idxmax()
    line = part[part.of_head == head].sort_values("offset").value.to_numpy()
    length = (len(line) + 1) // 2
    places = np.arange(length)
    values = line[places[:, None] - places + length - 1]  # (T, T)
    reach = np.abs(line - NEUTRAL[which]).max() or 1.0
    image = panel.imshow(values, cmap="RdBu_r", vmin=NEUTRAL[which] - reach, vmax=NEUTRAL[which] + reach)
    panel.set_title(f"{which}, head {head}", fontsize=8.5)
    panel.set(xlabel="j", ylabel="i")
    ticks = list(range(0, length, max(1, -(-length // 5))))
    panel.set_xticks(ticks)
    panel.set_yticks(ticks)
    panel.grid(False)
    panel.figure.colorbar(image, ax=panel, shrink=0.8)
