"""Accuracy against path length, between the whole network and a guess: one panel an architecture and way of training."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rankfall.report.style import CHANCE, COLOURS, WHOLE, Picture, band, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

TABLES = ["paths"]


def paths(
    read: "Callable[[str], DataFrame]",
    *,
    task: str = "sorting",
    architectures: list[str] = ["SAN+skip"],
    evaluation: str = "recomputed",
) -> Picture:
    table = read("paths")
    table = table[(table.task == task) & table.architecture.isin(architectures) & (table.status == "done")]
    settings = sorted(table[["training", "depth"]].drop_duplicates().itertuples(index=False, name=None), key=order)
    figure, axes = canvas(
        max(1, len(architectures)), max(1, len(settings)), 2.9 * max(1, len(settings)) + 0.6, 2.5 * len(architectures) + 0.5,
        sharey=True,
    )  # fmt: skip
    findings = []
    for i, architecture in enumerate(architectures):
        for j, (training, depth) in enumerate(settings):
            chosen = (table.architecture == architecture) & (table.training == training) & (table.depth == depth)
            panel = axes[i][j]
            if not chosen.any():
                panel.set_visible(False)
                continue
            draw(panel, table[chosen], evaluation)
            panel.set_title(f"{architecture}, {training}, {depth} layers")
            findings.append(f"{architecture}, {training}, {depth} layers: {finding(table[chosen], evaluation)}")
            if j == 0:
                panel.set_ylabel("accuracy per token")
            if i == len(architectures) - 1:
                panel.set_xlabel("path length (layers a path goes through)")
    axes[0][0].legend(loc="best", fontsize=8)
    seeds = table.seed.nunique()
    caption = (
        f"Path effectiveness on {task} ({evaluation} attention). Lines are means over {seeds} seeds, bands one "
        "standard deviation over seeds (each seed averaged over its repeats); the whole network and chance are measured on the same test sets. "
        + " ".join(findings)
    )
    return Picture(figure, caption)


def order(setting: tuple[str, int]) -> tuple[bool, str, int]:
    """The published setting first."""
    return (setting[0] != "published", setting[0], -setting[1])


def by_length(table: "DataFrame", evaluation: str) -> "DataFrame":
    """Mean and deviation over seeds, by number of paths and length; repeats are averaged within a seed first."""
    chosen = table[(table.kind == "path") & (table.evaluation == evaluation)]
    each = chosen.groupby(["paths", "length", "seed"]).accuracy.mean()
    return each.groupby(["paths", "length"]).agg(["mean", "std"]).fillna(0.0).reset_index()


def reference(table: "DataFrame", kind: str) -> tuple[float, float]:
    values = table[table.kind == kind].accuracy
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0


def draw(panel: "Axes", table: "DataFrame", evaluation: str) -> None:
    for kind, colour, label in (("whole", WHOLE, "whole network"), ("chance", CHANCE, "chance (position majority)")):
        mean, deviation = reference(table, kind)
        panel.axhline(mean, color=colour, linestyle="-" if kind == "whole" else "--", label=label)
        panel.axhspan(mean - deviation, mean + deviation, color=colour, alpha=0.12, linewidth=0)
    lines = by_length(table, evaluation)
    for colour, (count, line) in zip(COLOURS, lines.groupby("paths")):
        band(panel, line["length"], line["mean"], line["std"], colour, f"{count} paths", marker="o")
    panel.set_ylim(0, 1.03)
    panel.set_xticks(sorted(lines["length"].unique()))


def finding(table: "DataFrame", evaluation: str) -> str:
    """Whether the published shape holds: short paths carry the accuracy, long ones fall to chance. Said with its numbers."""
    lines = by_length(table, evaluation)
    most = lines[lines.paths == lines.paths.max()].set_index("length")["mean"]
    whole, chance = reference(table, "whole")[0], reference(table, "chance")[0]
    depth = int(most.index.max())
    short, long = most[most.index <= max(1, depth // 3)], most[most.index > depth - max(1, depth // 3)]
    carried = (short.max() - chance) / (whole - chance) if whole > chance else float("nan")
    holds = carried >= 0.5 and long.max() <= chance + 0.05
    return (
        f"the published shape {'holds' if holds else 'does not hold'}: whole network {whole:.3f}, chance {chance:.3f}, "
        f"best of lengths up to {short.index.max()} {short.max():.3f} ({carried:.0%} of the way from chance to the whole network), "
        f"best of lengths from {long.index.min()} {long.max():.3f}."
    )
