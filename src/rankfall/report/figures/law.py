"""The law of rank collapse, below every floor: residuals by layer, the local exponent, and how loose the bounds are."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rankfall.report.selection import finished, one_a_seed
from rankfall.report.style import COLOURS, Picture, band, canvas, spaced, tower

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

TABLES = ["law"]


def law(
    read: "Callable[[str], DataFrame]",
    *,
    task: str = "sorting",
    training: str = "init",
    architectures: list[str] = [
        "attention",
        "attention+MLP",
        "attention+norm",
        "attention+causal",
        "attention+weak-skip",
        "attention+skip",
        "attention+shared-skip",
        "attention+column-norm",
    ],
    where: dict[str, Any] = {},
) -> Picture:
    """The architectures' cells of one training at their greatest depth. `where`: only these cells, by any column."""
    table = finished(read("law"), "law", where)
    table = table[(table.task == task) & (table.training == training)]
    table = table[table.architecture.isin(architectures)]
    table = table[table.depth == table.groupby("architecture").depth.transform("max")]
    one_a_seed(table, "law", ["architecture"])
    figure, axes = canvas(1, 3, 11.5, 4.4)
    left, middle, right = axes[0]
    findings = []
    for index, (colour, name) in enumerate(zip(COLOURS, architectures)):
        chosen = table[table.architecture == name]
        if len(chosen):
            decay(left, chosen, colour, name)
            exponents(middle, chosen, colour, 0.09 * (index - len(architectures) / 2))
            findings.append(finding(chosen, name))
    floors(left, table[table.architecture == architectures[0]])
    slope(left, table[table.architecture == architectures[0]])
    left.set(
        xlabel="layer",
        ylabel="residual |res(X)| / |X|",
        title="a straight line: doubly exponential",
    )
    marks = spaced(0, int(np.log10(max(10.0, -table.log10_residual.min()))))
    high = [0.9, 0.99] if len(marks) > marks[-1] else []  # where there is room between the marks
    left.set_yticks([*twice(np.log10(high)), *marks], [str(value) for value in high] + [tower(mark) for mark in marks])
    left.invert_yaxis()
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    middle.set(
        xlabel="layer", ylabel="local exponent", title="how a layer answers: d log out / d log in", ylim=(-0.15, 3.35)
    )
    for value in (1, 3):
        middle.axhline(value, color="#999999", linewidth=0.8, linestyle=":")
    slack(right, table)
    seeds = table.seed.nunique()
    text = (
        f"Untrained or trained weights of `{training}` on {task}, {seeds} seeds, by centred propagation in float64; "
        "lines are means over seeds (of the mean over samples), bands one standard deviation over seeds. "
        "Left: the vertical axis is log10(-log10 residual); dashed, what plain float64 and float32 passes say. "
        "Right: how many decades each one-layer bound lies above the true residual, where its condition holds. "
    )
    return Picture(figure, text + " ".join(findings))


def per_seed(table: "DataFrame", column: str) -> "DataFrame":
    """Mean and deviation over seeds by layer, samples averaged within a seed first."""
    each = table[table[column].notna()].groupby(["layer", "seed"])[column].mean()
    return each.groupby("layer").agg(["mean", "std"]).fillna(0.0).reset_index()


def twice(log10: Any) -> Any:
    """log10(-log10 residual)"""
    return np.log10(-np.minimum(log10, -1e-3))


def decay(panel: "Axes", table: "DataFrame", colour: str, name: str) -> None:
    lines = per_seed(table.assign(height=twice(table.log10_residual)), "height")
    band(panel, lines["layer"], lines["mean"], lines["std"], colour, name, marker="o", markersize=3)


def floors(panel: "Axes", table: "DataFrame") -> None:
    """Where direct computation stops: drawn as far as it gives a number at all."""
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
    """log10(3) a layer: what cubing does on these axes."""
    lines = per_seed(table.assign(height=twice(table.log10_residual)), "height")
    if len(lines) < 4:
        return
    first, last = lines.iloc[2], lines.iloc[-1]
    x = np.array([first["layer"], last["layer"]])
    y = first["mean"] + (x - x[0]) * np.log10(3) + 0.45
    panel.plot(x, y, color="black", linewidth=0.9)
    panel.text(x.mean() - 0.5, y.mean() + 0.15, "slope $\\log_{10} 3$ a layer", fontsize=8, ha="right", va="top")


def exponents(panel: "Axes", table: "DataFrame", colour: str, aside: float) -> None:
    """Set aside a little, since many architectures have the same exponent."""
    lines = per_seed(table, "exponent")
    band(panel, lines["layer"] + aside, lines["mean"], lines["std"], colour, marker="o", markersize=3, linestyle="none")


def slack(panel: "Axes", table: "DataFrame") -> None:
    """A bound is null wherever its condition fails."""
    for colour, (column, label) in zip(
        COLOURS[2:], (("lemma_slack", "published lemma with γ"), ("proven_slack", "bound with a proof, no γ"))
    ):
        for style, (name, part) in zip(("-", "--", ":"), table[table[column].notna()].groupby("architecture")):
            lines = per_seed(part, column)
            band(panel, lines["layer"], lines["mean"], lines["std"], colour, f"{label}: {name}", linestyle=style)
    panel.set(xlabel="layer", ylabel="decades above the residual", title="how loose the bounds are")
    if panel.lines:
        panel.set_ylim(bottom=min(0.0, panel.get_ylim()[0]))  # a bound that is broken is seen
        panel.legend(fontsize=7, loc="lower right")
    else:
        panel.text(0.5, 0.5, "no layer here has a bound", ha="center", va="center", transform=panel.transAxes)


def finding(table: "DataFrame", name: str) -> str:
    last = table[table.layer == table.layer.max()]
    exponent = last.exponent.mean()
    residual = last.log10_residual.mean()
    return f"{name}: log10 residual {residual:.4g} after {int(table.layer.max())} layers, last local exponent {exponent:.3f}."
