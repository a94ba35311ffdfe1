"""The rank-collapse picture for real models: relative residual against layer, four variants, one panel a model and phase.

Two bands, never mixed: the filled one is one standard deviation over seeds (of means over samples), the dotted lines are
one standard deviation over samples (within a seed). A published curve, where there is one, is a thin dashed line of the same colour.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rankfall.report.style import COLOURS, Picture, band, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

TABLES = ["model_residuals"]
DATA = ["report/published/rank_by_layer.csv"]
COLOUR = {
    "SAN": COLOURS[0],
    "SAN+MLP": COLOURS[1],
    "SAN+skip": COLOURS[2],
    "transformer": COLOURS[6],
    "SAN+bare MLP": COLOURS[3],
}
PUBLISHED = {"bert-base-cased": "BERT", "albert-base-v2": "ALBERT", "xlnet-base-cased": "XLNet"}


def models(
    read: "Callable[[str], DataFrame]",
    *,
    models: list[str] | None = None,
    metric: str = "composite",
    centre: str = "mean",
    definition: str | None = None,
    log: bool = False,
    columns: int = 3,
) -> Picture:
    """`models`: which ones, in order; default all. `log`: logarithmic, with what is below the floor of its format shown hollow."""
    table = read("model_residuals")
    table = table[(table.metric == metric) & (table.centre == centre)]
    if definition is not None:
        table = table[table.definition == definition]
    panels = _panels(table, models)
    columns = max(1, min(columns, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    figure, axes = canvas(rows, columns, 3.1 * columns + 0.4, 2.6 * rows + 0.5, sharey=True)
    flat = [panel for row in axes for panel in row]
    overlay = _published()
    findings = []
    for axis, (model, phase, kind) in zip(flat, panels):
        chosen = table[(table.model == model) & (table.phase == phase) & (table.definition == kind)]
        draw(axis, chosen, log)
        known = (
            overlay[(overlay.model == PUBLISHED.get(model, model)) & (overlay.phase == phase)]
            if metric == "composite"
            else None
        )
        if known is not None:
            for variant, line in known.groupby("variant"):
                axis.plot(line.layer, line["mean"], color=COLOUR.get(variant, "#999999"), linewidth=0.7, linestyle="--")
        axis.set_title(f"{short(model)}, {phase}" + ("" if kind == "clean" else f" ({kind})"))
        axis.set_xlabel("layer")
        findings.append(finding(chosen, model, phase))
    for axis in flat[len(panels) :]:
        axis.set_visible(False)
    for row in axes:
        row[0].set_ylabel("relative residual")
    if panels:
        flat[0].legend(fontsize=7.5, loc="best")
        figure.align_labels()
    taken = "token mean" if centre == "mean" else "minimiser of the norm"
    caption = (
        f"Relative residual ({metric} norm, from the {taken}) by layer. Filled bands: one standard deviation over "
        "seeds; dotted: over samples; dashed: published curves where there are any. " + " ".join(findings)
    )
    return Picture(figure, caption)


def _panels(table: "DataFrame", models: list[str] | None) -> list[tuple[str, str, str]]:
    """(model, phase, definition) in the asked order, initialisation before pretrained."""
    found = table[["model", "phase", "definition"]].drop_duplicates().itertuples(index=False, name=None)
    order = {name: place for place, name in enumerate(models or sorted(table.model.unique()))}
    return sorted(
        (panel for panel in found if panel[0] in order), key=lambda panel: (order[panel[0]], panel[1], panel[2])
    )


def short(model: str) -> str:
    """The last part of a hub name or folder."""
    return model.rstrip("/").rsplit("/", 1)[-1]


def summary(table: "DataFrame") -> "DataFrame":
    """By variant and layer: mean, deviation over seeds, deviation over samples (mean over seeds), share at the floor."""
    seeded = table.assign(seed=table.seed.fillna(-1))
    each = seeded.groupby(["variant", "layer", "seed"]).agg(
        mean=("value", "mean"), within=("value", "std"), floor=("floor", "mean")
    )
    result = each.groupby(["variant", "layer"]).agg(
        mean=("mean", "mean"), seeds=("mean", "std"), samples=("within", "mean"), floor=("floor", "mean")
    )
    return result.fillna(0.0).reset_index()


def draw(axis: "Axes", table: "DataFrame", log: bool) -> None:
    """One panel."""
    lines = summary(table)
    for variant, colour in COLOUR.items():
        line = lines[lines.variant == variant]
        if line.empty:
            continue
        band(axis, line.layer, line["mean"], line.seeds, colour, variant)
        for sign in (-1, 1):
            axis.plot(line.layer, line["mean"] + sign * line.samples, color=colour, linewidth=0.6, linestyle=":")
        if log:
            noise = line[line.floor > 0.5]
            axis.plot(noise.layer, noise["mean"], color=colour, linestyle="none", marker="o", markerfacecolor="white")
    if log:
        axis.set_yscale("log")
    else:
        axis.set_ylim(0, 1.05)


def finding(table: "DataFrame", model: str, phase: str) -> str:
    """The panel's finding in numbers: the layer where SAN is lost, and the residual that the whole model keeps."""
    lines = summary(table).set_index(["variant", "layer"])["mean"]
    depth = int(table.layer.max())
    parts = []
    for variant in ("SAN", "transformer"):
        if variant in lines.index.get_level_values(0):
            line = lines[variant]
            low = line[line < 0.01]
            fate = f"below 0.01 from layer {low.index.min()}" if len(low) else "never below 0.01"
            parts.append(f"{variant} {line[0]:.3f} to {line[depth]:.2g}, {fate}")
    return f"{short(model)} {phase}: " + "; ".join(parts) + "."


def _published() -> "DataFrame":
    """Curves read off the published figure: model, phase, variant, layer, mean, std."""
    from importlib.resources import files

    import pandas as pd

    with files("rankfall").joinpath(DATA[0]).open() as handle:
        return pd.read_csv(handle, comment="#")
