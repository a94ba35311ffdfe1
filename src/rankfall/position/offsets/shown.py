"""Declare the table `offsets` and what is shown of it: learned terms for each offset between two tokens.

The figure: learned terms by offset: the bias B and the factors C, as a line per head and as the matrix of one head.
"""

from typing import Any

import numpy as np

from rankfall.annotations import Axes, DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.report.captions import describe_missing
from rankfall.report.colours import CHANCE
from rankfall.report.labels import join, many
from rankfall.report.lines import below, collect_labels, on, steps
from rankfall.report.looks import label
from rankfall.report.page.chart import NETWORK, Chart
from rankfall.report.schema import Table, declare_table
from rankfall.report.selection import choose
from rankfall.report.style import WIDTH, Picture, canvas


def columns() -> Table:
    return declare_table(
        "offsets",
        "each cell, term, layer, head and offset",
        """
        which text: B: what a position adds to scores; C: what the normaliser `urpe` multiplies weights by
        layer int?: 1 is the first block; null: all layers share the term
        of_head int: 1 is the first attention head
        offset int [tokens]: i - j: place of the token that looks less that of the one it looks at
        value float: the matrix's entry at this offset
        """,
        key="which layer of_head offset",
    )


CHARTS = (
    Chart(
        "offsets",
        "What is learned about each offset",
        "B: what the position encoding adds to the score of a token so many places before (right) or after (left); C: what the normaliser "
        "urpe multiplies its weight by.",
        "offset",
        "value",
        "offset: place of the token that looks, less that of the one looked at",
        "what is added or multiplied by",
        choose=(*NETWORK, "which", "layer", "of_head"),
        start={"which": "B", "of_head": 1},
        place=40,
    ),
)


TITLES = {"B": "bias B of scores", "C": "factors C of weights"}
NAMED = 6  # ranges listed in the caption
NEUTRAL = {"B": 0.0, "C": 1.0}  # initial values, which have no effect


def figure(
    read: Read,
    *,
    training: str | None = None,
    architectures: list[str] = [],
    where: dict[str, Any] = {},
) -> Picture:
    """Draw the terms of the lowest seed. The matrix is that of the head whose values differ most.

    `where`: only these cells, by any column.
    """
    requested = {"training": training, "architecture": architectures}
    table, whole, (training,) = choose(read("offsets"), "offsets", where, **requested)
    common = table[table.layer.isna()]
    if common.empty:
        raise RankfallError(
            "figure offsets: every layer has its own terms, but the figure draws terms that all layers share"
        )
    lowest = common[common.seed == common.groupby(["task", "architecture"]).seed.transform("min")]
    cells = sorted(lowest[["task", "architecture", "key"]].drop_duplicates().itertuples(index=False, name=None))
    kinds = [which for which in TITLES if (lowest.which == which).any()]
    figure, axes = canvas(len(cells), 2 * len(kinds), WIDTH, 1.9 * len(cells) + 0.4)
    for row, (task, architecture, key) in zip(axes, cells):
        for column, which in enumerate(kinds):
            part = lowest[(lowest.key == key) & (lowest.which == which)]
            left, right = row[2 * column : 2 * column + 2]
            if part.empty:
                left.set_visible(False)
                right.set_visible(False)
                continue
            left.axhline(NEUTRAL[which], color=CHANCE, linestyle="--", linewidth=0.8)
            on(left, part, "offset", "value", "of_head", steps(sorted(part.of_head.unique())), marker=None)
            left.set(title=f"{label(task)}, {label(architecture)}:\n{TITLES[which]}", xlabel="offset i - j", ylabel="")
            draw_matrix(right, part, which)
    lines = [panel for row in axes for panel in row[::2]]
    below(figure, {f"head {name}": handle for name, handle in collect_labels(lines, ("of_head",)).items()}, 8)
    caption = (
        f"What networks have learned about each offset i - j, training {label(training)}. Lines: heads of the lowest seed, shared by all "
        "layers (dashed: no effect). Squares: the head whose values differ most. "
        f"Over {many(common.seed.nunique(), 'seed')}, {describe_ranges(common)}."
        f"{describe_missing(common, ['architecture', 'task'], whole=whole)}"
    )
    columns = ["task", "architecture", "seed", "layer", "which", "of_head", "offset", "value"]
    return Picture(figure, caption, table[columns].sort_values(columns[:-1]))


def describe_ranges(table: DataFrame) -> str:
    """Write the range of values of each kind and network. They are not ranked, since kinds and tasks have no common scale."""
    spans = table.groupby(["which", "architecture", "task"]).value.agg(["min", "max"])
    several = table.task.nunique() > 1
    texts = [
        f"{which} of {label(name)}{f' on {label(task)}' * several} goes from {low:.2f} to {high:.2f}"
        for (which, name, task), low, high in spans.itertuples(name=None)
    ]
    return join(texts[:NAMED] + ([f"{len(texts) - NAMED} more are in the numbers"] if len(texts) > NAMED else []))


def draw_matrix(panel: Axes, part: DataFrame, which: str) -> None:
    """Draw the Toeplitz matrix of one head, with colours symmetric around the value without effect."""
    import seaborn as sns

    head = part.groupby("of_head").value.std().idxmax()
    line = part[part.of_head == head].sort_values("offset").value.to_numpy()
    length = (len(line) + 1) // 2
    places = np.arange(length)
    values = line[places[:, None] - places + length - 1]  # (T, T)
    step = max(1, -(-length // 5))
    sns.heatmap(
        values, ax=panel, cmap="PRGn", center=NEUTRAL[which], square=True, xticklabels=step, yticklabels=step,
        cbar_kws={"shrink": 0.7, "label": "white: no effect"},
    )  # fmt: skip
    panel.set(title=f"{which}, head {head}", xlabel="place j", ylabel="place i")
    panel.tick_params(length=0, rotation=0)
