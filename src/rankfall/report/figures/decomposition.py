"""The exact contribution to the output of the paths of each length, and the number of these paths."""

from collections.abc import Callable
from math import comb
from typing import TYPE_CHECKING, Any

from rankfall.report.selection import finished, left_out, one_a_seed, one_of
from rankfall.report.style import CHANCE, COLOURS, WHOLE, Picture, band, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

TABLES = ["decomposition"]


def decomposition(
    read: "Callable[[str], DataFrame]",
    *,
    task: str | None = None,
    architecture: str | None = None,
    where: dict[str, Any] = {},
) -> Picture:
    """Of the deepest networks, a column of panels a training; the task and architecture that most cells have, unless named.
    `where`: only these cells, by any column."""
    whole = finished(read("decomposition"), "decomposition", where)
    table, task = one_of(whole, "decomposition", "task", task)
    table, architecture = one_of(table, "decomposition", "architecture", architecture)
    table = table[table.depth == table.groupby("training").depth.transform("max")]
    one_a_seed(table, "decomposition", ["training"])
    trainings = [str(name) for name in sorted(table.training.unique(), key=lambda name: (name != "init", name))]
    figure, axes = canvas(2, max(1, len(trainings)), 3.2 * max(1, len(trainings)) + 0.8, 5.4, sharex=True, sharey="row")
    findings = []
    for j, training in enumerate(trainings):
        chosen = table[table.training == training]
        upper, lower = axes[0][j], axes[1][j]
        lengths = chosen[chosen.term == "paths"]
        shares(upper, lengths, int(chosen.depth.iloc[0]), int(chosen.heads.iloc[0]))
        accuracies(lower, lengths)
        upper.set_title(training)
        lower.set_xlabel("path length (layers)")
        mean = lengths.groupby("length").output_share.mean()
        short = mean[mean.index <= 1].sum()
        findings.append(
            f"{training}: paths of length 0 and 1 make up {short:.0%} of the output (signed share), the longest {mean.iloc[-1]:.1%}; "
            f"largest error of the sum {chosen.error.max():.0e}."
        )
    axes[0][0].set_ylabel("share")
    axes[1][0].set_ylabel("accuracy per token")
    axes[0][0].legend(fontsize=7.5)
    axes[1][0].legend(fontsize=7.5)
    return Picture(
        figure,
        f"Exact decomposition of {architecture} on {task} by path length: signed share of the output, share of norms, and share "
        "among all paths. Below, accuracy of paths of one length alone (with biases) and of all others. Bands: one deviation over seeds. "
        + left_out(whole, table)
        + " ".join(findings),
    )


def shares(panel: "Axes", table: "DataFrame", depth: int, heads: int) -> None:
    for colour, (column, label) in zip(COLOURS, (("output_share", "of the output"), ("norm_share", "of norms"))):
        lines = table.groupby("length")[column].agg(["mean", "std"]).fillna(0.0).reset_index()
        band(panel, lines["length"], lines["mean"], lines["std"], colour, label, marker="o")
    lengths = list(range(depth + 1))
    counts = [comb(depth, k) * heads**k / (1 + heads) ** depth for k in lengths]
    panel.plot(lengths, counts, color=CHANCE, linestyle="--", label="of the number of paths")


def accuracies(panel: "Axes", table: "DataFrame") -> None:
    panel.axhline(table.accuracy.mean(), color=WHOLE, label="whole network")
    for colour, (column, label) in zip(
        COLOURS[2:], (("accuracy_alone", "this length alone"), ("accuracy_without", "all others"))
    ):
        lines = table.groupby("length")[column].agg(["mean", "std"]).fillna(0.0).reset_index()
        band(panel, lines["length"], lines["mean"], lines["std"], colour, label, marker="o")
    panel.set_ylim(0, 1.03)
