"""The law of rank collapse, without a rounding floor: residuals by layer, the local exponent, and how loose the bounds are."""

from collections.abc import Callable
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from rankfall.report.selection import among, finished, left_out, one_a_seed, one_of
from rankfall.report.style import COLOURS, Picture, band, canvas, palette, spaced, tower

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

TABLES = ["law"]


def law(
    read: "Callable[[str], DataFrame]",
    *,
    task: str | None = None,
    training: str | None = None,
    architectures: list[str] = [],
    where: dict[str, Any] = {},
) -> Picture:
    """The architectures' cells of one training at their greatest depth: all there are of the task and training that most cells have,
    unless named. `where`: only these cells, by any column."""
    whole = finished(read("law"), "law", where)
    table, task = one_of(whole, "law", "task", task)
    table, training = one_of(table, "law", "training", training)
    table = among(table, "law", "architecture", architectures)
    table = table[table.depth == table.groupby("architecture").depth.transform("max")]
    one_a_seed(table, "law", ["architecture"])
    names = [str(name) for name in architectures or sorted(table.architecture.unique())]
    parts = {name: table[table.architecture == name] for name in names}
    clear = {name: above_floor(part) for name, part in parts.items()}
    figure, axes = canvas(1, 3, 11.5, 4.4)
    left, middle, right = axes[0]
    findings = []
    for index, (colour, name) in enumerate(zip(palette(len(names)), names)):
        decay(left, clear[name], colour, name, cut=len(clear[name]) < len(parts[name]))
        exponents(middle, parts[name], colour, 0.09 * (index - len(names) / 2))
        findings.append(finding(parts[name], clear[name], name))
    reference = next((name for name in names if (parts[name].method == "centred").all()), None)
    if reference is not None:
        floors(left, parts[reference])
        slope(left, parts[reference])
    left.set(
        xlabel="layer",
        ylabel="residual |res(X)| / |X|",
        title="a straight line: doubly exponential",
    )
    lowest = min((part.log10_residual.min() for part in clear.values()), default=0.0)
    marks = spaced(0, int(np.log10(max(10.0, -lowest if lowest == lowest else 0.0))))
    high = [0.9, 0.99] if len(marks) > marks[-1] else []  # where there is room between the marks
    left.set_yticks([*twice(np.log10(high)), *marks], [str(value) for value in high] + [tower(mark) for mark in marks])
    left.invert_yaxis()
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    middle.set(
        xlabel="layer",
        ylabel="local exponent",
        title="local exponent: d log res out / d log res in",
        ylim=(-0.15, 3.35),
    )
    if not middle.lines:
        middle.text(0.5, 0.5, "no layer here has one", ha="center", va="center", transform=middle.transAxes)
    for value in (1, 3):
        middle.axhline(value, color="#999999", linewidth=0.8, linestyle=":")
    slack(right, table)
    text = (
        f"Networks of training `{training}` on {task}, {table.seed.nunique()} seeds; {methods(parts, clear)} "
        "Lines are means over seeds (of the mean over samples), bands one standard deviation over seeds. "
        "Left: the vertical axis is log10(-log10 residual)"
        + (f"; dashed, plain float64 and float32 passes of {reference}. " if reference is not None else ". ")
        + "Right: how many decades each one-layer bound lies above the true residual, where its condition holds. "
    )
    return Picture(figure, text + left_out(whole, table) + " ".join(findings))


def above_floor(table: "DataFrame") -> "DataFrame":
    """Layers before the first at which any sample of any seed is rounding noise."""
    noise = table[table.floor]
    return table[table.layer < noise.layer.min()] if len(noise) else table


def methods(parts: "dict[str, DataFrame]", clear: "dict[str, DataFrame]") -> str:
    """How each line is computed, and where it therefore ends."""
    found: dict[str, list[str]] = {"centred": [], "float64": []}
    for name, part in parts.items():
        plain = sorted(part[part.method != "centred"].method_reason.unique())
        if not plain:
            found["centred"].append(name)
            continue
        layer = clear[name].layer.max() + 1 if len(clear[name]) < len(part) else None
        ends = (
            f", rounding noise from layer {int(layer) if layer == layer else 0} on and cut there (cross)"
            if layer is not None
            else ""
        )
        some = "" if (part.method != "centred").all() else "in part "
        found["float64"].append(f"{name} {some}({'; '.join(plain)}{ends})")
    said = [f"by centred propagation in float64: {', '.join(found['centred'])}"] if found["centred"] else []
    said += [f"by a plain float64 pass: {', '.join(found['float64'])}"] if found["float64"] else []
    return "; ".join(said) + "."


def per_seed(table: "DataFrame", column: str) -> "DataFrame":
    """Mean and deviation over seeds by layer, samples averaged within a seed first."""
    each = table[table[column].notna()].groupby(["layer", "seed"])[column].mean()
    return each.groupby("layer").agg(["mean", "std"]).fillna(0.0).reset_index()


def twice(log10: Any) -> Any:
    """log10(-log10 residual)"""
    return np.log10(-np.minimum(log10, -1e-3))


def decay(panel: "Axes", table: "DataFrame", colour: Any, name: str, cut: bool) -> None:
    """A line up to its first rounding noise, where it ends with a cross."""
    lines = per_seed(table.assign(height=twice(table.log10_residual)), "height")
    plain = bool((table.method != "centred").any()) or not len(table)
    label = f"{name} (plain float64)" if plain else name
    band(
        panel, lines["layer"], lines["mean"], lines["std"], colour, label, marker="o", markersize=3, linestyle="-." if plain else "-"
    )  # fmt: skip
    if cut and len(lines):
        panel.plot(lines["layer"].iloc[-1:], lines["mean"].iloc[-1:], "X", color=colour, markersize=8)


def floors(panel: "Axes", table: "DataFrame") -> None:
    """The values of direct computation, up to the last layer where it gives a number."""
    for name, style in (("float64", "--"), ("float32", ":")):
        column = f"log10_{name}"
        lines = per_seed(table.assign(height=twice(table[column].astype(float))), "height")
        if not len(lines):
            continue
        panel.plot(lines["layer"], lines["mean"], linestyle=style, color="#555555", linewidth=1.2)
        floor = np.log10(-np.log10(16 * np.finfo(name).eps))
        panel.axhline(floor, color="#bbbbbb", linewidth=0.8, linestyle=style)
        panel.text(
            panel.get_xlim()[1],
            floor,
            f"{name} ends here",
            ha="right",
            va="top",
            fontsize=7,
            color="#555555",
        )


def slope(panel: "Axes", table: "DataFrame") -> None:
    """A line of slope log10(3) per layer, which is cubing on these axes."""
    lines = per_seed(table.assign(height=twice(table.log10_residual)), "height")
    if len(lines) < 4:
        return
    first, last = lines.iloc[2], lines.iloc[-1]
    x = np.array([first["layer"], last["layer"]])
    y = first["mean"] + (x - x[0]) * np.log10(3) + 0.45
    panel.plot(x, y, color="black", linewidth=0.9)
    panel.text(x.mean() - 0.5, y.mean() + 0.15, "slope $\\log_{10} 3$ a layer", fontsize=8, ha="right", va="top")


def exponents(panel: "Axes", table: "DataFrame", colour: Any, aside: float) -> None:
    """Markers shifted slightly, since many architectures have the same exponent; plain passes have none."""
    lines = per_seed(table, "exponent")
    if not len(lines):
        return
    band(panel, lines["layer"] + aside, lines["mean"], lines["std"], colour, marker="o", markersize=3, linestyle="none")


def slack(panel: "Axes", table: "DataFrame") -> None:
    """A bound is null wherever its condition fails."""
    for colour, (column, label) in zip(
        COLOURS[2:], (("lemma_slack", "published lemma with γ"), ("proven_slack", "bound with a proof, no γ"))
    ):
        styles = cycle(("-", "--", ":", "-."))
        for style, (name, part) in zip(styles, table[table[column].notna()].groupby("architecture")):
            lines = per_seed(part, column)
            band(panel, lines["layer"], lines["mean"], lines["std"], colour, f"{label}: {name}", linestyle=style)
    panel.set(xlabel="layer", ylabel="decades above the residual", title="how loose the bounds are")
    if panel.lines:
        panel.set_ylim(bottom=min(0.0, panel.get_ylim()[0]))  # a bound that is broken is seen
        panel.legend(fontsize=7, loc="lower right")
    else:
        panel.text(0.5, 0.5, "no layer here has a bound", ha="center", va="center", transform=panel.transAxes)


def finding(table: "DataFrame", clear: "DataFrame", name: str) -> str:
    """The last layer above rounding noise; rows may be equal to the last digit there, and plain passes have no exponent."""
    if clear.empty:
        return f"{name}: rounding noise from the first layer."
    last = clear[clear.layer == clear.layer.max()]
    residual, exponent = last.log10_residual.astype(float).mean(), last.exponent.astype(float).mean()
    said = "rows identical to the last digit" if residual != residual else f"log10 residual {residual:.4g}"
    known = "" if exponent != exponent else f", last local exponent {exponent:.3f}"
    return f"{name}: {said} after {int(last.layer.max())} layers{known}."
