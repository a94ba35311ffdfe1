"""Declare the table `path_counts` and what is shown of it: number of paths of each length.

The figure: number of paths of each length: nearly all paths are long.
"""

from rankfall.annotations import Read
from rankfall.report.lines import SHARE, legend_below, lines, steps
from rankfall.report.page.chart import Chart
from rankfall.report.published_numbers import read_published
from rankfall.report.schema import Table, declare_table
from rankfall.report.style import Picture


def columns() -> Table:
    return declare_table(
        "path_counts",
        "each model and path length",
        """
        model text: name, as in the config
        depth int [layers]: layers
        heads int: attention heads of a layer
        length int [layers]: layers that a path goes through
        log10_paths float [log10]: log10 of the number of such paths, C(L, k) H^k
        proportion float: share among all paths of the model, (1 + H)^L
        published float?: the same in the published figure; null: not shown there
        deviation float?: proportion less published
        """,
        key="model length",
        cells=False,
    )


CHARTS = (
    Chart(
        "path_counts",
        "How many paths have which length",
        "Counted from a model's number of layers and heads alone: share of all its paths.",
        "length",
        "proportion",
        "layers that a path goes through",
        "share of all paths",
        line="model",
        choose=(),
        within=SHARE,
        place=60,
    ),
)


DATA = ["rank/path_counts/published.csv"]
PUBLISHED = read_published(__file__)


def figure(read: Read) -> Picture:
    """Draw the share of paths of each length in published models, computed and as published."""
    table = read("path_counts")
    table = table.assign(
        line=[f"{name} ({depth} × {heads})" for name, depth, heads in zip(table.model, table.depth, table.heads)]
    )
    names = table.sort_values(["depth", "heads", "model"]).line.unique()
    shown = table[table.length > 0]
    palette = steps(names)
    grid = lines(shown, "length", "proportion", "line", palette, width=7.0, height=2.6, errorbar=None, markersize=2.5)
    (panel,) = grid.axes.flat
    known = shown[shown.published.notna()]
    panel.scatter(known.length, known.published, c=known.line.map(palette), marker="x", s=18, linewidth=0.8)
    panel.scatter([], [], c="#555555", marker="x", s=18, linewidth=0.8, label="published curve")
    ticks = [1, 2, 4, 8, 16, 32, 64, 96]
    grid.set(xscale="log", xlabel="path length (layers)", ylabel="share of all paths")
    panel.set_xticks(ticks, [str(tick) for tick in ticks])
    panel.set_xticks([], minor=True)
    legend_below(grid, 4)
    compared = table[table.deviation.notna()]
    worst = compared.deviation.abs().max() if len(compared) else float("nan")
    peaks = table.loc[table.groupby("model").proportion.idxmax()]
    late = float((peaks.length / peaks.depth).min())
    return Picture(
        grid.figure,
        "Share of paths by length, C(L, k) H^k / (1 + H)^L, of models with L layers of H heads; crosses are the published "
        "curve, from which "
        f"the largest of {len(compared)} points deviates by {worst:.1e}. The most frequent length is at least {late:.0%} of "
        "the number of layers.",
        table.drop(columns="line"),
    )
