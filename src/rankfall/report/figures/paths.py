"""Accuracy against path length, between the whole network and a guess: one panel an architecture and way of training."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from rankfall.errors import RankfallError
from rankfall.report.selection import among, finished, left_out, one_a_seed, one_of
from rankfall.report.style import CHANCE, WHOLE, Picture, band, canvas, palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

TABLES = ["paths"]


def paths(
    read: "Callable[[str], DataFrame]",
    *,
    task: str | None = None,
    architectures: list[str] = [],
    trainings: list[str] = [],
    depths: list[int] = [],
    evaluation: Literal["recomputed", "frozen"] = "recomputed",
    where: dict[str, Any] = {},
    columns: int = 4,
) -> Picture:
    """Empty lists stand for all there is, no task for the one that most cells have; panels follow the order of the lists. `where`: only
    these cells, by any column."""
    whole = finished(read("paths"), "paths", where)
    table, task = one_of(whole, "paths", "task", task)
    for column, wanted in (("architecture", architectures), ("training", trainings), ("depth", depths)):
        table = among(table, "paths", column, wanted)
    measured = sorted(table.evaluation.dropna().unique())
    if evaluation not in measured:
        raise RankfallError(
            f"figure paths: evaluation {evaluation!r} was not measured; there is: {', '.join(measured) or 'nothing'}"
        )
    one_a_seed(table, "paths", ["architecture", "training", "depth"])
    found = set(table[["architecture", "training", "depth"]].itertuples(index=False, name=None))
    ranks = {name: rank for rank, name in enumerate(architectures or sorted(table.architecture.unique()))}
    panels = sorted(found, key=lambda panel: (-panel[2], panel[1] != "published", panel[1], ranks[panel[0]]))
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = canvas(rows, columns, max(3.9, 2.6 * columns + 0.5), 2.4 * rows + 0.8, sharey=True)
    findings = []
    for place in range(rows * columns):
        axis = axes[place // columns][place % columns]
        if place >= len(panels):
            axis.set_visible(False)
            continue
        architecture, training, depth = panels[place]
        chosen = table[(table.architecture == architecture) & (table.training == training) & (table.depth == depth)]
        draw(axis, chosen, evaluation)
        name = architecture if architecture == training else f"{architecture}, {training}"
        axis.set_title(f"{name}, {depth} layers")
        findings.append(f"{name}, {depth} layers: {finding(chosen, evaluation)}")
        axis.set_xlabel("path length")
        if place % columns == 0:
            axis.set_ylabel("accuracy per token")
    # Below the panels, clear of every curve; a narrow figure has room for two entries a line.
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4 if columns > 2 else 2)
    caption = (
        f"Path effectiveness on {task} ({evaluation} attention): accuracy of sums of random paths of one length. Lines are means over "
        f"{table.seed.nunique()} seeds, bands one standard deviation over seeds (each seed averaged over its repeats"
        f"{draws(table, evaluation)}); the whole network and chance are measured on the same test sets. "
        + left_out(whole, table)
        + " ".join(findings)
    )
    return Picture(figure, caption)


def by_length(table: "DataFrame", evaluation: str) -> "DataFrame":
    """Mean and deviation over seeds, by number of paths and length; repeats are averaged within a seed first."""
    chosen = table[(table.kind == "path") & (table.evaluation == evaluation)]
    each = chosen.groupby(["paths", "length", "seed"]).accuracy.mean()
    return each.groupby(["paths", "length"]).agg(["mean", "std"]).fillna(0.0).reset_index()


def draws(table: "DataFrame", evaluation: str) -> str:
    """The share of the bands' variance that is due to the draw of paths: every seed draws its own, and repeats within a seed give the
    variance of a draw.

    The mean of R repeats has 1/R of their variance; the rest of the variance over seeds is that of the networks. Pooled over all points."""
    chosen = table[(table.kind == "path") & (table.evaluation == evaluation)]
    point = ["architecture", "training", "depth", "paths", "length"]
    within = chosen.groupby([*point, "seed"]).accuracy.agg(["mean", "var", "count"]).reset_index()
    total = within.groupby(point)["mean"].var()
    if (within["count"] < 2).all() or not total.sum() > 0:
        return ""
    share = (within["var"] / within["count"]).groupby([within[name] for name in point]).mean().sum() / total.sum()
    return f", which draws its own paths; the draw accounts for {min(1.0, share):.0%} of the bands' variance"


def reference(table: "DataFrame", kind: str) -> tuple[float, float]:
    values = table[table.kind == kind].accuracy
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0


def draw(panel: "Axes", table: "DataFrame", evaluation: str) -> None:
    for kind, colour, label in (("whole", WHOLE, "whole network"), ("chance", CHANCE, "chance (no input seen)")):
        mean, deviation = reference(table, kind)
        panel.axhline(mean, color=colour, linestyle="-" if kind == "whole" else "--", label=label)
        panel.axhspan(mean - deviation, mean + deviation, color=colour, alpha=0.12, linewidth=0)
    lines = by_length(table, evaluation)
    for colour, (count, line) in zip(palette(lines.paths.nunique()), lines.groupby("paths")):
        band(panel, line["length"], line["mean"], line["std"], colour, f"{count} paths", marker="o")
    panel.set_ylim(0, 1.03)
    panel.set_xticks(sorted(lines["length"].unique()))


def finding(table: "DataFrame", evaluation: str) -> str:
    """Whether the published result holds, with its numbers: short paths give most of the accuracy, long ones fall to chance."""
    lines = by_length(table, evaluation)
    most = lines[lines.paths == lines.paths.max()].set_index("length")["mean"]
    whole, chance = reference(table, "whole")[0], reference(table, "chance")[0]
    if whole <= chance:
        return f"the network itself ({whole:.3f}) does no better than chance ({chance:.3f}), so its accuracy cannot be attributed to paths."
    depth = int(most.index.max())
    short, long = most[most.index <= max(1, depth // 3)], most[most.index > depth - max(1, depth // 3)]
    carried = (short.max() - chance) / (whole - chance)
    holds = carried >= 0.5 and long.max() <= chance + 0.05
    return (
        f"the published shape {'holds' if holds else 'does not hold'}: whole network {whole:.3f}, chance {chance:.3f}, "
        f"best of lengths up to {short.index.max()} {short.max():.3f} ({carried:.0%} of the way from chance to the whole network), "
        f"best of lengths from {long.index.min()} {long.max():.3f}."
    )
