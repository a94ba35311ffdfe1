"""One figure of all subjects that the folder has: rates, growth, planning and memory, as they were measured."""

from collections.abc import Callable
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from benchmarks.record import SCHEMA

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


def draw(folder: Path) -> Path:
    """The figure, beside the results."""
    import pandas as pd
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    files = {path.stem: path for path in sorted(folder.glob("*.parquet")) if path.stem in PANELS}
    found = {name: pd.read_parquet(path, columns=SCHEMA.names) for name, path in files.items()}
    panels = [(panel, found[subject]) for subject, several in PANELS.items() if subject in found for panel in several]
    rows = max(1, -(-len(panels) // 2))
    figure = Figure(figsize=(11, 3.6 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, 2, squeeze=False).flatten()
    for ax, (panel, data) in zip(axes, panels):
        panel(ax, data)
        ax.grid(alpha=0.3)
    for ax in axes[len(panels) :]:
        ax.axis("off")
    figure.savefig(folder / "bench.png", dpi=120)
    return folder / "bench.png"


def named(variant: str, members: float) -> str:
    if variant.startswith("clean"):
        return variant
    return f"{variant}, {members:.0f} stacked" if members > 1 else f"{variant}, alone"


def colour(variant: str, members: float) -> str:
    """The same in every panel: of an engine one for networks alone, one for stacks."""
    return (
        "C1"
        if "compiled" in variant
        else f"C{2 * ('clean', 'plain', 'machine').index(variant.split()[0]) + (members > 1)}"
    )


def beside_clean(ax: "Axes", data: "DataFrame") -> None:
    """How many times as fast as the clean module; one bar a variant."""
    data = data[data.against.fillna("").str.startswith("clean")]
    labels = [f"{n}\ndropout {d:g}" for n, d in data[["network", "dropout"]].drop_duplicates().itertuples(index=False)]
    variants = data[["variant", "members"]].drop_duplicates().itertuples(index=False)
    shown = [(variant, members) for variant, members in variants]
    for place, (variant, members) in enumerate(shown):
        part = data[(data.variant == variant) & (data.members == members)]
        at = [
            labels.index(f"{n}\ndropout {d:g}") + (place - (len(shown) - 1) / 2) * 0.8 / len(shown)
            for n, d in zip(part.network, part.dropout)
        ]
        ax.bar(at, part.ratio, 0.8 / len(shown), label=named(variant, members), color=colour(variant, members))
    ax.set(title="Member-steps a second", ylabel="times two clean processes", xticks=range(len(labels)))
    several = len(labels) > 6
    ax.set_xticklabels(
        [label.replace("\n", ", ") for label in labels] if several else labels, fontsize=6, rotation=90 * several
    )
    ax.set_ylim(0, 1.35 * data.ratio.max())  # room for the legend
    ax.legend(fontsize=7, ncols=2)


def each_network(ax: "Axes", data: "DataFrame") -> None:
    """Member-steps a second of every network of the default run, alone and stacked."""
    data = data[(data.quantity == "rate") & ~data.against.fillna("").str.startswith("clean")]
    names = list(dict.fromkeys(data.network))
    for (variant, members), part in data.groupby(["variant", "members"]):
        ax.plot(
            part.value,
            [names.index(name) for name in part.network],
            "o",
            ms=4,
            label=named(variant, members),
            color=colour(variant, members),
        )
    ax.set(
        title="Every network of the default run",
        xlabel="member-steps a second, two processes",
        xscale="log",
        yticks=range(len(names)),
    )
    ax.set_yticklabels(names, fontsize=6)
    ax.set_xlim(right=6 * data.value.max())  # room for the legend
    ax.legend(fontsize=7)


def shares(ax: "Axes", data: "DataFrame") -> None:
    """What share of the machine's measured rates the steps use."""
    data = data[data.of_arithmetic.notna()]
    for (variant, members), part in data.groupby(["variant", "members"]):
        color = colour(variant, members)
        ax.plot(part.of_arithmetic, part.of_copy, "o", ms=4, label=named(variant, members), color=color)
    ax.set(
        title="Shares of the rates of this machine",
        xlabel="of large matrix products",
        ylabel="of copying, if nothing were fused",
        xscale="log",
        yscale="log",
    )
    ax.legend(fontsize=7)


def growth(ax: "Axes", data: "DataFrame") -> None:
    """Cost against each size, with its fitted exponent."""
    fitted = {(row.axis, row.variant): row.value for row in data[data.quantity == "exponent"].itertuples()}
    for (axis, variant), part in data[data.quantity == "cost"].groupby(["axis", "variant"], sort=False):
        ax.plot(
            part["size"] / part["size"].iloc[0],
            part.ratio,
            "o-",
            ms=4,
            label=f"{axis}, {variant}: exponent {fitted[axis, variant]:.2f}",
        )
    ax.set(
        title="Cost of a step of the sorting network",
        xlabel="size, over the smallest",
        ylabel="cost, over that of the smallest",
        xscale="log",
        yscale="log",
    )
    ax.legend(fontsize=7)


def sized(quantity: str, title: str) -> Callable[["Axes", "DataFrame"], None]:
    def panel(ax: "Axes", data: "DataFrame") -> None:
        data = data[data.quantity == quantity]
        by = "variant" if data.variant.notna().any() else "network"
        for name, part in data.groupby(by, sort=False):
            ax.plot(part["size"], part.value, "o-", ms=4, label=name)
        ax.set(title=title, xlabel=data.axis.iloc[0], ylabel=data.unit.iloc[0], xscale="log", yscale="log")
        ax.legend(fontsize=7)

    return panel


def bars(quantity: str, title: str, unit: str) -> Callable[["Axes", "DataFrame"], None]:
    def panel(ax: "Axes", data: "DataFrame") -> None:
        data = data[(data.quantity == quantity) & (data.unit == unit)]
        ax.barh([fill(name, 22) for name in data.variant], data.value)
        for place, (value, ratio) in enumerate(zip(data.value, data.ratio)):
            ax.text(value, place, f" {ratio:.2f} x", va="center", fontsize=7)
        ax.set(title=fill(f"{title} (ratios: to {data.against.iloc[0]})", 44), xlabel=f"{quantity}, {unit}")
        ax.margins(x=0.15)

    return panel


PANELS: dict[str, tuple[Callable[["Axes", "DataFrame"], None], ...]] = {
    "steps": (beside_clean, each_network, shares),
    "kinds": (beside_clean,),
    "growth": (growth,),
    "cells": (bars("cells an hour", "From configuration to table", "by a clock"),),
    "measures": (bars("one more cell", "Measures", "s"),),
    "planning": (sized("time", "Planning"), sized("memory", "Memory of planning")),
    "memory": (sized("peak", "Peak memory of a training job"),),
    "watch": (bars("share of a run", "What watching a training adds", "1"),),
}
