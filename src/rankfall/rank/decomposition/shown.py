"""Declare the table `decomposition` and what is shown of it: the contribution of paths of each length to the output.

The figure: exact contribution of the paths of each length to the output, and the number of these paths.
"""

from math import comb
from typing import Any

from rankfall.annotations import Read
from rankfall.report.captions import describe_lines, describe_missing
from rankfall.report.colours import BLUE, CHANCE, GREEN, ORANGE, PINK, WHOLE
from rankfall.report.labels import join
from rankfall.report.lines import SHARE, cut, legend_below, lines, summary
from rankfall.report.looks import label
from rankfall.report.page.chart import Chart
from rankfall.report.ranking import average, say_mean, say_span
from rankfall.report.schema import Table, declare_table
from rankfall.report.selection import chances, choose, deepest, init_first, select
from rankfall.report.settings import differences
from rankfall.report.style import Picture


def columns() -> Table:
    return declare_table(
        "decomposition",
        "each cell and path length, and one for the term of the biases",
        """
        term text: paths, or bias: all that descends from biases
        length int? [layers]: layers that these paths go through; null: bias
        size float?: Frobenius norm of the sum over these paths, over all samples
        norm_share float?: that, of the sum of all terms' norms
        output_share float?: <term, output> / <output, output>: signed, adds up to one
        relative_residual float?: |res|/|.| of the term, composite norm, mean over samples; null: a term of a sample is zero
        loss_without float?: test loss with the term taken out of the last state
        accuracy_without float?: test accuracy then; null for regression
        loss_alone float?: test loss of the term alone, with the bias term
        accuracy_alone float?: test accuracy then; null for regression
        loss float?: test loss of the whole network on the same samples
        accuracy float?: test accuracy of the whole network; null for regression
        error float?: largest entry of (sum of all terms - output) / largest entry of output
        value_reason text?: why the term has no size or shares: the output is beyond the range of float64; else empty
        """,
        key="term length",
    )


PATHS = {"term": "paths"}


CHARTS = (
    Chart(
        "decomposition",
        "Output by the length of paths",
        "A network's output is a sum over all its paths, which is exact for networks of attention and skip connections. Share of the "
        "output that the paths of each length make; shares can be negative and add up to 1 with that of the biases.",
        "length",
        "output_share",
        "layers that a path goes through",
        "share of the output",
        where=PATHS,
        start={"training": "converged"},
        place=50,
    ),
)


TABLES = ["decomposition", "cells"]
LINES = {  # column -> (row of panels, label, colour)
    "output_share": ("share", "share of the output", BLUE),
    "norm_share": ("share", "share of the norms", ORANGE),
    "accuracy_alone": ("accuracy per token", "accuracy of this length alone", GREEN),
    "accuracy_without": ("accuracy per token", "accuracy of all other lengths", PINK),
}


def figure(
    read: Read,
    *,
    task: str | None = None,
    architecture: str | None = None,
    where: dict[str, Any] = {},
) -> Picture:
    """Draw the deepest networks, a column of panels per training, by default of the task and architecture with the most cells.

    `where`: only these cells, by any column.
    """
    requested = {"task": task, "architecture": architecture}
    table, whole, (task, architecture) = choose(read("decomposition"), "decomposition", where, **requested)
    table = deepest(table, "decomposition", ["training"])
    paths = select(table, PATHS)
    long = paths.melt(["training", "seed", "length"], list(LINES), "column", "value").dropna(subset="value")
    for place, name in enumerate(("panel", "line")):
        long[name] = long.column.map({column: about[place] for column, about in LINES.items()})
    grid = lines(
        long, "length", "value", "line", {label: colour for _, label, colour in LINES.values()}, height=1.9,
        col="training", col_order=init_first(table.training), row="panel", row_order=["share", "accuracy per token"],
        shared=(True, "row"),
    )  # fmt: skip
    cells = read("cells")
    guesses = {name: chances(part, cells) for name, part in table.groupby("training")}
    chance = say_span((guess for of_training in guesses.values() for guess in of_training), "{:.2f}".format)
    for (row, training), panel in grid.axes_dict.items():
        # A share of the output may be negative, since terms may point away from it; a share of norms is not.
        if row == "share":
            cut(panel, SHARE, LINES["norm_share"][2])
        else:
            cut(panel, SHARE)
        chosen = paths[paths.training == training]
        depth, heads = int(chosen.depth.iloc[0]), int(chosen.heads.iloc[0])
        lengths = list(range(depth + 1))
        if row == "share":
            counts = [comb(depth, k) * heads**k / (1 + heads) ** depth for k in lengths]
            panel.plot(lengths, counts, color=CHANCE, linestyle="--", label="share of the number of paths")
        else:
            panel.axhline(chosen.accuracy.mean(), color=WHOLE, label="accuracy of the whole network")
            for guess in guesses[training] if len(guesses[training]) == 1 else ():
                panel.axhline(guess, color=CHANCE, linestyle=":", label="chance (no input seen)")
        panel.set_title(label(training) if row == "share" else "")
    for row, panels in zip(grid.row_names, grid.axes):
        panels[0].set_ylabel(row)
    grid.set(xlabel="path length (layers)")
    legend_below(grid, 3)
    first = paths[paths.length <= 1].groupby(["training", "seed"]).output_share.sum().reset_index()
    first = average(first.assign(output_share=100 * first.output_share), "output_share", "training")
    others = {name: f", {words}" if words else "" for name, words in differences(table, "training").items()}
    short = join(
        f"{say_mean(first['mean'][name], first['std'][name], 0)}% ({label(name)}{others[name]})"
        for name in grid.col_names
    )
    return Picture(
        grid.figure,
        f"What paths of each length contribute to the output of {label(architecture)} on {label(task)}: "
        f"{describe_lines(paths, ['training'])}. Above: shares. Below: accuracy of one length "
        f"alone, and of all others (dotted: chance, {chance}). Paths of length 0 and 1 make up {short} of "
        f"the output.{describe_missing(paths, ['training'], whole=whole)}",
        summary(paths, ["training", "length"], *LINES, "error"),
    )
