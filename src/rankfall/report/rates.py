"""Rates of token identification as panels: a column a network, a row a set of candidates, and the transfer of maps between layers."""

from typing import TYPE_CHECKING

from rankfall.report.style import CHANCE, COLOURS, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

CANDIDATES = {
    "sentence": "tokens of the sentence",
    "distinct": "words that occur once in it",
    "vocabulary": "whole vocabulary",
}
MAPS = {"naive": COLOURS[0], "linear": COLOURS[1], "mlp": COLOURS[2]}
POSITION = COLOURS[3]


def own(table: "DataFrame") -> "DataFrame":
    """Maps on the layer that they were trained on, with the loss that is the distance they are asked by, and maps without training."""
    there = table.trained_layer.isna() | (table.trained_layer == table.layer)
    return table[there & (table.loss.isna() | (table.loss == table.distance)) & table.rate.notna()]


def panels(networks: "dict[str, DataFrame]", candidates: list[str], transfer: bool) -> "Figure":
    """Each network's table has `rate`, `low` and `high`: the middle of a line and the edges of its band."""
    rows = len(candidates) + transfer
    figure, axes = canvas(rows, len(networks), 2.5 * len(networks) + 1.4, 2.1 * rows + 0.7)
    for column, (title, table) in enumerate(networks.items()):
        for row, name in enumerate(candidates):
            panel = axes[row][column]
            lines(panel, own(table[table.candidates == name]))
            panel.set_ylim(-0.03, 1.05)
            panel.set_title(title if row == 0 else "")
            panel.set_xlabel("" if transfer or row < rows - 1 else "layer")
            if column == 0:
                panel.set_ylabel(f"rate among\n{CANDIDATES[name]}")
        if transfer:
            between(axes[-1][column], table)
    if transfer:
        axes[-1][0].set_ylabel("layer that the\nlinear map is trained on")
    handles = {
        label: handle for row in axes for panel in row for handle, label in zip(*panel.get_legend_handles_labels())
    }
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=5, fontsize=8)
    return figure


def lines(axes: "Axes", table: "DataFrame") -> None:
    """A line for each map: solid and with its band by cosine, dashed by L2."""
    for name, colour in MAPS.items():
        for distance, style in (("cosine", "-"), ("l2", "--")):
            line = table[(table["map"] == name) & (table.distance == distance)].sort_values("layer")
            label = f"{name}, {'cosine' if distance == 'cosine' else 'L2'}"
            axes.plot(line.layer, line.rate, style, color=colour, label=label, marker="o" if style == "-" else "")
            if distance == "cosine":
                axes.fill_between(line.layer.astype(float), line.low, line.high, color=colour, alpha=0.18, linewidth=0)
    place = table[(table["map"] == "position") & (table.distance == "cosine")]
    if len(place):
        axes.axhline(place.rate.mean(), color=POSITION, linewidth=1.2, linestyle="-.", label="position alone, cosine")
    axes.axhline(table.chance.mean(), color=CHANCE, linewidth=1, linestyle=":", label="guess")


def between(axes: "Axes", table: "DataFrame") -> None:
    """Rates of linear maps on the states of other layers, by cosine within the sentence."""
    chosen = (table["map"] == "linear") & (table.loss == "cosine") & (table.distance == "cosine")
    part = table[chosen & (table.candidates == "sentence")]
    grid = part.pivot_table(index="trained_layer", columns="layer", values="rate")
    numbers = grid.to_numpy(dtype=float, na_value=float("nan"))
    axes.imshow(numbers, cmap="viridis", vmin=0, vmax=1, origin="lower", aspect="auto")
    for y, row in enumerate(numbers):
        for x, value in enumerate(row):
            axes.text(
                x,
                y,
                f"{value:.2f}".lstrip("0"),
                ha="center",
                va="center",
                fontsize=6,
                color="w" if value < 0.6 else "k",
            )
    axes.set_xticks(range(len(grid.columns)), [str(layer) for layer in grid.columns])
    axes.set_yticks(range(len(grid.index)), [str(layer) for layer in grid.index])
    axes.grid(visible=False)
    axes.set_xlabel("layer that it is used on")


def finding(title: str, table: "DataFrame", candidates: str) -> str:
    """What is left at the last layer, by cosine."""
    part = own(table[table.candidates == candidates])
    part = part[part.distance == "cosine"]
    last = part[part.layer == part.layer.max()].set_index("map")
    rates = ", ".join(f"{name} {last.rate[name]:.2f} ({last.low[name]:.2f} to {last.high[name]:.2f})" for name in MAPS)
    place = part[part["map"] == "position"].rate.mean()
    return f"{title}: {rates}; position alone {place:.2f}."
