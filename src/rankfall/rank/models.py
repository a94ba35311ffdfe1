"""Rank collapse in real models: relative residual against layer, four variants, one panel per model and phase.

Two bands are kept apart: the filled band is one standard deviation over seeds (of means over samples), the dotted lines are one standard
deviation over samples (within a seed). A published curve is a thin dashed line of the same colour, drawn only where the measured model
has the sizes of the published one.
"""

import math
from typing import Literal

import numpy as np

from rankfall.annotations import DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.report.account import describe_missing, seeds
from rankfall.report.coincide import coincide
from rankfall.report.colours import CHANCE, colour, colours
from rankfall.report.lines import POSITIVE, legend_below, lines, note_cut, say_cut
from rankfall.report.looks import label
from rankfall.report.model_names import name_measurements, name_models, short
from rankfall.report.selection import select
from rankfall.report.style import Picture

TABLES = ["model_residuals"]
DATA = ["rank/model_residuals/rank_by_layer.csv"]
VARIANTS = ("SAN", "SAN+MLP", "SAN+skip", "transformer", "SAN+bare MLP")
SIZES = ["layers", "heads", "width"]
PUBLISHED_CURVES = {  # name -> name of its published curves, and the sizes of the published model
    "bert-base-cased": ("BERT", (12, 12, 768)),
    "albert-base-v2": ("ALBERT", (12, 12, 768)),
    "xlnet-base-cased": ("XLNet", (12, 12, 768)),
}
LOST = 0.01  # a residual below this counts as lost


def figure(
    read: Read,
    *,
    models: list[str] | None = None,
    metric: Literal["composite", "l1", "linf", "frobenius"] = "composite",
    centre: Literal["mean", "best"] = "mean",
    definition: Literal["clean", "published"] | None = None,
    log: bool = False,
    columns: int = 3,
) -> Picture:
    """Draw the residual by layer.

    `models`: which ones, in order; by default all. `log`: logarithmic axis, with values below the floor of their format shown hollow.
    """
    table = read("model_residuals")
    table = select(table, {"metric": metric, "centre": centre})
    if definition is not None:
        table = table[table.definition == definition]
    order = {name: place for place, name in enumerate(models or sorted(table.model.unique()))}
    table = table[table.model.isin(list(order))]
    if table.empty:
        raise RankfallError(
            f"figure models: the table has no {metric} norm about centre {centre!r} of these models and this definition"
        )
    table = table.assign(panel=name_measurements(table), seed=table.seed.fillna(-1), place=table.model.map(order))
    panels = (
        table[["place", "phase", "definition", "panel", "model", *SIZES]]
        .drop_duplicates()
        .sort_values(["place", "phase", "definition", "panel"])
    )
    points = summary(table, ["panel", "variant", "layer"])
    each = table.groupby(["panel", "variant", "layer", "seed"]).value.mean().reset_index()
    shown = [name for name in VARIANTS if name in set(table.variant)]
    grid = lines(
        each, "layer", "value", "variant", colours(shown), col="panel", col_order=list(panels.panel), col_wrap=columns,
        log="y" if log else "", marker=None, shared=(False, True), bounds=POSITIVE,
    )  # fmt: skip
    overlay, dashed = published(), False
    for model, phase, title, *sizes in panels[["model", "phase", "panel", *SIZES]].itertuples(index=False, name=None):
        panel = grid.axes_dict[title]
        for variant, line in points[points.panel == title].groupby("variant"):
            for edge in (line["mean"] - line.samples, line["mean"] + line.samples):
                (dotted,) = panel.plot(
                    line.layer,
                    edge.clip(lower=0.0),  # 0 is not drawn on a logarithmic axis
                    color=colour(str(variant)),
                    linewidth=0.6,
                    linestyle=":",
                )
                note_cut(dotted, line.layer.to_numpy(), edge.to_numpy(), POSITIVE)
            noise = line[line.floor > 0.5] if log else line[:0]
            panel.plot(
                noise.layer,
                noise["mean"],
                color=colour(str(variant)),
                linestyle="none",
                marker="o",
                markerfacecolor="white",
            )
        name, of_sizes = PUBLISHED_CURVES.get(short(model), ("", ()))
        comparable = metric == "composite" and tuple(sizes) == of_sizes
        known = overlay[(overlay.model == name) & (overlay.phase == phase) & comparable]
        for variant, line in known.groupby("variant"):
            dashed = True
            panel.plot(line.layer, line["mean"], color=colour(str(variant)), linewidth=0.7, linestyle="--")
    top = float((points["mean"] + points.samples).max())
    grid.set(ylabel="relative residual", **({} if log else {"ylim": (0, max(1.05, min(top, 1.5)))}))
    noisy = sorted(table["dtype"][table.floor.fillna(False).astype(bool)].unique()) if log else []
    floors = {str(name): 16 * float(np.finfo(str(name)).eps) for name in noisy}
    for name, height in floors.items():
        grid.refline(y=height, color=CHANCE, linestyle=":", label=f"rounding of {name}")
    legend_below(grid, 5)
    taken = "token mean" if centre == "mean" else "minimiser of the norm"
    several = bool((each.groupby("panel").seed.nunique() > 1).any())
    bands = "filled bands are one standard deviation over these, where there are several, dotted lines one over samples"
    lined = bands if several else "dotted lines are one standard deviation over samples"
    caption = (
        f"Relative residual ({metric} norm, from the {taken}) by layer, {'means over' if several else 'of'} {seeds(each, ['panel'])}; "
        f"{lined}{', and dashed lines published curves' * dashed}. {say_sizes(panels)} "
    )
    if floors:
        heights = ", ".join(f"{name} {height:.0e}" for name, height in floors.items())
        caption += (
            f"Hollow: at the floor, where most is rounding (grey, dotted: 16 units of the last digit, {heights}). "
        )
    cut = say_cut(grid.figure, "a band or a dotted line")
    why = describe_missing(table, "value", ["panel", "variant"])
    alike = coincide(each, "variant", "layer", "value", ["panel"], log=log, span=None if log else 1.05)
    return Picture(grid.figure, caption + describe_finding(points) + cut + alike + why, points)


def summary(table: DataFrame, by: "list[str] | tuple[str, ...]" = ("variant", "layer")) -> DataFrame:
    """Return, by variant and layer, the mean, deviation over seeds, deviation over samples (mean over seeds), and share at the floor."""
    by = list(by)
    seeded = table.assign(seed=table.seed.fillna(-1), floor=table.floor.astype(float))
    each = seeded.groupby([*by, "seed"]).agg(mean=("value", "mean"), within=("value", "std"), floor=("floor", "mean"))
    result = each.groupby(by).agg(
        mean=("mean", "mean"), seeds=("mean", "std"), samples=("within", "mean"), floor=("floor", "mean")
    )
    return result.fillna({"seeds": 0.0, "samples": 0.0}).reset_index()  # a null mean stays null


def describe_finding(points: DataFrame) -> str:
    """Write in which panels SAN loses rank and from which layer on, and the least residual that a whole model keeps."""
    san = points[points.variant == "SAN"]
    lost = san[san["mean"] < LOST].groupby("panel").layer.min()
    parts = [f"{title}: from layer {layer}" for title, layer in lost.items()]
    said = f"Less than {LOST:g} is left of {label('SAN')} in {len(lost)} of {san.panel.nunique()} panels ({'; '.join(parts) or 'none'})"
    least = points[points.variant == "transformer"]["mean"].min()
    return said + (
        f"; the whole model keeps at least {down(float(least)):g} at every layer." if least == least else "."
    )


def down(value: float) -> float:
    """Round down to two digits."""
    if value <= 0:
        return value
    digits = 1 - math.floor(math.log10(value))
    rounded = round(value, digits)
    return rounded if rounded <= value else round(rounded - 10.0**-digits, digits)


def say_sizes(panels: DataFrame) -> str:
    """Write the sizes of each measured model, and those of the published model where they differ."""
    names = name_models(panels.model)
    said = []
    for model, *sizes in panels[["model", *SIZES]].drop_duplicates().itertuples(index=False, name=None):
        _, published_sizes = PUBLISHED_CURVES.get(short(model), ("", tuple(sizes)))
        other = f" (not the published {' x '.join(map(str, published_sizes))})" * (tuple(sizes) != published_sizes)
        said.append(f"{names[model]} {' x '.join(map(str, sizes))}{other}")
    return f"Layers x heads x width: {', '.join(said)}."


def published() -> DataFrame:
    """Return the curves of the published figure: model, phase, variant, layer, mean, std."""
    from importlib.resources import files

    import pandas as pd

    with files("rankfall").joinpath(DATA[0]).open() as handle:
        return pd.read_csv(handle, comment="#")
