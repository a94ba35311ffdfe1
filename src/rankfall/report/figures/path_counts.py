"""How many paths have each length: nearly all paths are long."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rankfall.report.style import COLOURS, Picture, canvas

if TYPE_CHECKING:
    from pandas import DataFrame

TABLES = ["path_counts"]


def path_counts(read: "Callable[[str], DataFrame]") -> Picture:
    table = read("path_counts")
    figure, axes = canvas(1, 1, 6.4, 3.8)
    panel = axes[0][0]
    models = table[["model", "depth", "heads"]].drop_duplicates().sort_values(["depth", "heads", "model"])
    for index, (name, depth, heads) in enumerate(models.itertuples(index=False, name=None)):
        line = table[(table.model == name) & (table.length > 0)]
        colour = COLOURS[index % len(COLOURS)]
        style = "-" if index < len(COLOURS) else "--"
        panel.plot(
            line.length,
            line.proportion,
            style,
            color=colour,
            marker="o",
            markersize=2.5,
            label=f"{name} ({depth} × {heads})",
        )
        known = line[line.published.notna()]
        panel.plot(known.length, known.published, linestyle="none", marker="x", markersize=5, color=colour, alpha=0.7)
    panel.set_xscale("log")
    panel.set_xticks([1, 2, 4, 8, 16, 32, 64, 96], ["1", "2", "4", "8", "16", "32", "64", "96"])
    panel.minorticks_off()
    panel.set(
        xlabel="path length (layers)", ylabel="share of all paths", title="layers × heads; crosses: published curve"
    )
    panel.legend(fontsize=7.5)
    compared = table[table.deviation.notna()]
    worst = compared.deviation.abs().max() if len(compared) else float("nan")
    peaks = table.loc[table.groupby("model").proportion.idxmax()]
    text = "; ".join(f"{row.model} {row.length} ({row.proportion:.3f})" for row in peaks.itertuples())
    return Picture(
        figure,
        f"Share of paths by length, C(L, k) H^k / (1 + H)^L. Most frequent lengths: {text}. "
        f"Largest deviation from the published curve over {len(compared)} points: {worst:.1e}.",
    )
