"""Attribution by layer, one row of panels a network: own share, share by distance, how often another token is first, and methods compared
in ranks.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rankfall.errors import RankfallError
from rankfall.report.selection import among, finished, one_a_seed, one_of
from rankfall.report.style import COLOURS, Picture, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

TABLES = ["attribution"]
COLOUR = {
    "jacobian": COLOURS[6],
    "jacobian without outliers": COLOURS[5],
    "jacobian x input": COLOURS[0],
    "norms": COLOURS[2],
    "rollout": COLOURS[1],
    "attention": COLOURS[3],
    "ablation": COLOURS[4],
}
BANDS = ("distance 1", "distance 2", "distance 3", "distance 4-5", "distance 6-10", "distance 11+")
QUANTILES = {"med": "median", "q1": "lower", "q3": "upper", "whislo": "low", "whishi": "high"}
PUBLISHED = {1: 0.306, 6: 0.149, 12: 0.107}  # medians of own shares in BERT-base, second-hand (Brunner et al. 2020)


def attribution(
    read: "Callable[[str], DataFrame]",
    *,
    task: str | None = None,
    architectures: list[str] = [],
    trainings: list[str] = [],
    where: dict[str, Any] = {},
) -> Picture:
    """A row of panels for each architecture and training, of the task that most cells have unless one is named."""
    table, _ = one_of(finished(read("attribution"), "attribution", where), "attribution", "task", task)
    table = among(among(table, "attribution", "architecture", architectures), "attribution", "training", trainings)
    one_a_seed(table, "attribution", ["architecture", "training"])
    return drawn(
        {f"{name}, {training}": part for (name, training), part in table.groupby(["architecture", "training"])}
    )


def drawn(networks: "dict[str, DataFrame]", published: bool = False) -> Picture:
    """One row of panels for each network; numbers are means over its seeds. `published`: with the medians of Brunner et al."""
    if not networks:
        raise RankfallError("figure attribution: there is no network to draw")
    figure, axes = canvas(len(networks), 4, 12.4, 2.55 * len(networks) + 0.5, sharex="row")
    said = []
    for row, (name, table) in zip(axes, networks.items()):
        layers = sorted(table.layer.unique())
        own(row[0], table, published)
        distances(row[1], table)
        lines(row[2], quantity(table, "not first"), "method")
        others = table[
            (table.quantity == "spearman of others") & ((table.method == "jacobian") | (table.other == "jacobian"))
        ]
        others = others.assign(with_=others.other.where(others.method == "jacobian", others.method))
        lines(row[3], others, "with_")
        row[0].set_title(f"{name}: own share")
        row[2].set(ylim=(-0.03, 1.03))
        row[3].set(ylim=(-0.4, 1.03))
        for axis in row:
            axis.set_xticks(layers, [str(layer) if layer in ticks(layers) else "" for layer in layers])
        said.append(finding(name, table))
    for axis, title in zip(
        axes[0][1:], ("share by distance", "own token not first", "rank correlation with the Jacobian")
    ):
        axis.set_title(title)
    for axis in axes[-1]:
        axis.set_xlabel("layer")
    axes[0][1].legend(fontsize=6, ncols=2, loc="lower left", frameon=True, framealpha=0.9)
    axes[0][2].legend(fontsize=6)
    axes[0][3].legend(fontsize=6, loc="lower left")
    caption = (
        "Where each token's state comes from, by layer. Left: share of its own input in norms of whole Jacobian blocks (box: quartiles, "
        "whiskers: 5 and 95% of tokens"
        + ("; crosses: published medians, second-hand" if published else "")
        + "). Then: shares of other "
        "tokens by distance; how often another token has the largest; rank correlation of methods with the Jacobian, over other tokens. "
    )
    return Picture(figure, caption + " ".join(said))


def quantity(table: "DataFrame", name: str) -> "DataFrame":
    return table[(table.quantity == name) & (table.kept_tokens == "all")]


def own(axis: "Axes", table: "DataFrame", published: bool) -> None:
    part = quantity(table, "own share")
    means = part[part.method == "jacobian"].groupby("layer")[list(QUANTILES.values())].mean()
    boxes = [{key: line[column] for key, column in QUANTILES.items()} | {"fliers": []} for _, line in means.iterrows()]
    axis.bxp(boxes, positions=list(means.index), widths=0.6, showfliers=False, medianprops={"color": COLOURS[4]})
    if published:
        shown = {layer: value for layer, value in PUBLISHED.items() if layer <= means.index.max()}
        axis.plot(list(shown), list(shown.values()), color=COLOURS[0], marker="x", linestyle="none", markersize=6)
    axis.set_ylim(0, 1.02)


def distances(axis: "Axes", table: "DataFrame") -> None:
    import matplotlib

    part = table[(table.method == "jacobian") & (table.kept_tokens == "all")]
    below = 0.0
    for band, colour in zip(
        ("own share", *BANDS), matplotlib.colormaps["cividis"]([0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 1.0])
    ):
        value = part[part.quantity == band].groupby("layer").value.mean()
        axis.bar(
            value.index,
            value,
            bottom=below,
            width=0.85,
            color=colour,
            label=band.removeprefix("distance ") if band in BANDS else "own",
        )
        below = value + below
    axis.set_ylim(0, 1.02)
    axis.grid(False)


def lines(axis: "Axes", part: "DataFrame", by: str) -> None:
    for method, colour in COLOUR.items():
        line = part[part[by] == method].groupby("layer").value.mean().dropna()
        if len(line):
            style = (
                ":" if method == "jacobian without outliers" else "-"
            )  # it often lies on the line of the whole blocks
            axis.plot(line.index, line, color=colour, linestyle=style, marker="o", markersize=3, label=method)


def ticks(layers: list[int]) -> list[int]:
    return layers if len(layers) <= 8 else [layer for layer in layers if layer == 1 or layer % 3 == 0]


def finding(name: str, table: "DataFrame") -> str:
    """Own share (median) and not first, of the first and the last layer."""
    part = table[(table.method == "jacobian") & (table.kept_tokens == "all")]
    first, last = int(part.layer.min()), int(part.layer.max())
    median = part[part.quantity == "own share"].groupby("layer")["median"].mean()
    other = part[part.quantity == "not first"].groupby("layer").value.mean()
    return (
        f"{name}: median own share {median[first]:.1%} after layer {first}, {median[last]:.1%} after layer {last}; "
        f"another token first {other[first]:.1%} and {other[last]:.1%}."
    )
