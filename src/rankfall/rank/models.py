"""Rank collapse in real models: relative residual against layer, four variants, one panel per model and phase.

Bands are one standard deviation over samples, within a seed; the numbers of the figure have that over seeds too. A published curve is a
thin dashed line of the same colour, drawn only where the measured model has the sizes of the published one.
"""

from pathlib import Path
from typing import Literal

from rankfall.annotations import DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.rank.residuals.shown import MODEL_RESIDUAL
from rankfall.report.captions import describe_missing, describe_readings
from rankfall.report.colours import CHANCE, colour, colours
from rankfall.report.labels import join, name_measurements, name_models, short
from rankfall.report.lines import POSITIVE, legend_below, lines
from rankfall.report.looks import label
from rankfall.report.selection import select
from rankfall.report.style import Picture

TABLES = ["model_residuals"]
DATA = ["rank/residuals/rank_by_layer.csv"]
VARIANTS = ("SAN", "SAN+MLP", "SAN+skip", "transformer", "SAN+bare MLP")
SIZES = ["layers", "heads", "width"]
SIZED = "{} layers, {} heads, width {}"
PUBLISHED_CURVES = {  # name -> name of its published curves, and the sizes of the published model
    "bert-base-cased": ("BERT", (12, 12, 768)),
    "albert-base-v2": ("ALBERT", (12, 12, 768)),
    "xlnet-base-cased": ("XLNet", (12, 12, 768)),
}
LOST = 0.01  # a residual below this counts as lost


def figure(
    read: Read, *, models: list[str] | None = None, definition: Literal["clean", "published"] | None = None
) -> Picture:
    """Draw the residual by layer.

    `models`: which ones, in order; by default all. `definition`: of the variants, by default all that were measured.
    """
    table = select(read("model_residuals"), MODEL_RESIDUAL)
    if definition is not None:
        table = table[table.definition == definition]
    order = {name: place for place, name in enumerate(models or sorted(table.model.unique()))}
    table = table[table.model.isin(list(order))]
    if table.empty:
        raise RankfallError("figure models: the table has no residuals of these models and this definition")
    table = table.assign(panel=name_measurements(table), seed=table.seed.fillna(-1), place=table.model.map(order))
    by = ["place", "phase", "definition", "panel"]
    panels = table[[*by, "model", *SIZES]].drop_duplicates().sort_values(by)
    points = summary(table, ["panel", "variant", "layer"])
    by_seed = table.groupby(["panel", "variant", "layer", "seed"]).value.mean().reset_index()
    shown = [name for name in VARIANTS if name in set(table.variant)]
    grid = lines(
        by_seed, "layer", "value", "variant", colours(shown), col="panel", col_order=list(panels.panel), col_wrap=3,
        marker=None, shared=(False, True), bounds=POSITIVE, errorbar=None,
    )  # fmt: skip
    overlay, gaps = published(), []
    for model, phase, title, *sizes in panels[["model", "phase", "panel", *SIZES]].itertuples(index=False, name=None):
        panel = grid.axes_dict[title]
        for variant, line in points[points.panel == title].groupby("variant"):
            low, high = line["mean"] - line.samples, line["mean"] + line.samples
            panel.fill_between(line.layer, low.clip(lower=0), high, color=colour(str(variant)), alpha=0.15, linewidth=0)
        name, published_sizes = PUBLISHED_CURVES.get(short(model), ("", ()))
        known = overlay[(overlay.model == name) & (overlay.phase == phase) & (tuple(sizes) == published_sizes)]
        for variant, line in known.groupby("variant"):
            panel.plot(line.layer, line["mean"], color=colour(str(variant)), linewidth=0.8, linestyle="--")
            ours = points[(points.panel == title) & (points.variant == variant)].set_index("layer")["mean"]
            gaps += [(ours - line.set_index("layer")["mean"]).abs().max()]
    if gaps:
        panel.plot([], [], color=CHANCE, linewidth=0.8, linestyle="--", label="published curve")
    grid.set(ylabel="relative residual", ylim=(0, max(1.05, 1.02 * float((points["mean"] + points.samples).max()))))
    legend_below(grid, 3)
    dashed = f" Dashed: published curves, which differ from ours by up to {max(gaps):.2f}." if gaps else ""
    caption = (
        f"Relative residual by layer, of whole models and of models without some of their parts: "
        f"means over {describe_readings(table, 'panel')}, bands one standard deviation over samples."
        f"{dashed} {say_sizes(panels)} {describe_finding(points)}"
        f"{describe_missing(table, ['panel', 'variant'], 'value')}"
    )
    return Picture(grid.figure, caption, points)


def summary(table: DataFrame, by: "list[str] | tuple[str, ...]" = ("variant", "layer")) -> DataFrame:
    """Return, by variant and layer, the mean, deviation over seeds, deviation over samples (mean over seeds), and share at the floor."""
    by = list(by)
    seeded = table.assign(seed=table.seed.fillna(-1), floor=table.floor.astype(float))
    by_seed = seeded.groupby([*by, "seed"]).agg(
        mean=("value", "mean"), within=("value", "std"), floor=("floor", "mean")
    )
    result = by_seed.groupby(by).agg(
        mean=("mean", "mean"), seeds=("mean", "std"), samples=("within", "mean"), floor=("floor", "mean")
    )
    return result.fillna({"seeds": 0.0, "samples": 0.0}).reset_index()  # a null mean stays null


def describe_finding(points: DataFrame) -> str:
    """Write in which panels SAN loses rank and from which layer on, and the least residual that a whole model keeps."""
    san = points[points.variant == "SAN"]
    lost = san[san["mean"] < LOST].groupby("panel").layer.min()
    parts = [f"from layer {layer} on in {title}" for title, layer in lost.items()]
    sentence = f"{label('SAN')} is below {LOST:g} {join(parts)}." if parts else f"{label('SAN')} stays above {LOST:g}."
    least = points[points.variant == "transformer"]["mean"].min()
    return sentence + f" The least residual of a whole model is {least:.2g}." * bool(least == least)


def say_sizes(panels: DataFrame) -> str:
    """Write the layers, heads and width of each measured model, and those of the published model where they differ."""
    names = name_models(panels.model)
    sizes_of_models = []
    for model, *sizes in panels[["model", *SIZES]].drop_duplicates().itertuples(index=False, name=None):
        _, published_sizes = PUBLISHED_CURVES.get(short(model), ("", tuple(sizes)))
        other = f" (published: {SIZED.format(*published_sizes)})" * (tuple(sizes) != published_sizes)
        sizes_of_models.append(f"{names[model]}: {SIZED.format(*sizes)}{other}")
    return f"{'; '.join(sizes_of_models)}."


def published() -> DataFrame:
    """Return the curves of the published figure: model, phase, variant, layer, mean, std."""
    import pandas as pd

    return pd.read_csv(Path(__file__).with_name("residuals") / "rank_by_layer.csv", comment="#")
