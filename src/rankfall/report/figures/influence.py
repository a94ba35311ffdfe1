"""Influence of place on the last token of causal stacks: at birth, by formula and network, and what training does to it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rankfall.errors import RankfallError
from rankfall.report.style import COLOURS, WHOLE, Picture, band, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

TABLES = ["influence", "cell_influence"]
LINES = {"averaging": (WHOLE, "-", "uniform averaging"), "in squares": ("#888888", "--", "random maps, in squares")}
NETWORKS = {
    "none": (COLOURS[0], "no position", "o", 5),
    "rope": (COLOURS[4], "RoPE", ".", 3),
}  # rings around points: they coincide


def influence(
    read: "Callable[[str], DataFrame]", *, depth: int = 24, alpha: float = 0.3, architecture: str | None = None
) -> Picture:
    """`depth`, `alpha`: which untrained stack; `architecture`: which causal cells, by default the first."""
    table = read("influence")
    whole, places = table[table.quantity == "agreement"], table[(table.quantity == "share") & (table.depth == depth)]
    if places.empty or not (places.alpha == alpha).any():
        raise RankfallError(
            f"figure influence: depth {depth} with alpha {alpha} was not measured; choose others by its options"
        )
    figure, axes = canvas(1, 3, 10.4, 3.2)
    parts = [formulas_and(axes[0][0], places[places.alpha == alpha], whole, depth, alpha)]
    parts.append(pre_norm(axes[0][1], places[places.network == "pre-norm"], whole, depth))
    parts.append(trained(axes[0][2], read("cell_influence"), architecture))
    for axis in axes[0]:
        axis.set(xlabel="place / number of places", yscale="log")
        axis.legend(fontsize=7)
    axes[0][0].set_ylabel("share of the influence on the last token")
    caption = (
        "Share of each place in what reaches the last token: norms of whole Jacobian blocks, a point a place. Lines: uniform averaging, "
        "whose limit for many places is the published closed form. Early places and the last one are favoured, those between are not. "
    )
    return Picture(figure, caption + " ".join(parts))


def formulas_and(axis: "Axes", places: "DataFrame", whole: "DataFrame", depth: int, alpha: float) -> str:
    for source, (colour, style, label) in LINES.items():
        line = places[places.source == source].sort_values("place")
        axis.plot(line.place / line.length, line.share, color=colour, linestyle=style, label=label)
    axis.set_title(f"(1 - a) X + a SA(X), a = {alpha:g}, {depth} layers")
    marks(axis, places[places.source == "jacobian"])
    found = whole[(whole.source == "jacobian") & (whole.depth == depth) & (whole.alpha == alpha)]
    return (
        f"Left: rank correlation with uniform averaging {found.spearman.mean():.3f}; distance from it {found.distance.mean():.2f}, "
        f"from independent random maps, which add in squares, {found.from_squares.mean():.2f}."
    )


def pre_norm(axis: "Axes", places: "DataFrame", whole: "DataFrame", depth: int) -> str:
    found = whole[(whole.network == "pre-norm") & (whole.source == "jacobian") & (whole.depth == depth)]
    marks(axis, places[places.source == "jacobian"])
    line = places[places.source == "averaging"].groupby("place").share.mean()
    axis.plot(
        line.index / line.index.max(),
        line,
        color=WHOLE,
        label=f"uniform averaging, a = {found.fitted.mean():.2f} fitted",
    )
    axis.set_title(f"pre-norm transformer, {depth} layers")
    spearman = found.groupby("position").spearman.mean()
    said = ", ".join(f"{NETWORKS[name][1]} {value:.3f}" for name, value in spearman.items())
    return f"Middle: rank correlation with averaging at the best a: {said}."


def marks(axis: "Axes", places: "DataFrame") -> None:
    for position, (colour, label, marker, size) in NETWORKS.items():
        line = places[places.position == position].groupby("place").share.mean()
        look: dict[str, Any] = {
            "marker": marker,
            "markersize": size,
            "markerfacecolor": "none" if marker == "o" else colour,
        }
        axis.plot(line.index / line.index.max(), line, color=colour, linestyle="none", label=label, **look)


def trained(axis: "Axes", cells: "DataFrame", architecture: str | None) -> str:
    cells = cells[cells.status == "done"]
    chosen = architecture or (sorted(cells.architecture.unique()) or [None])[0]
    cells = cells[(cells.architecture == chosen) & (cells.layer == cells.depth)]
    if cells.empty:
        raise RankfallError(
            f"figure influence: no finished causal cell of architecture {chosen}; choose by `architecture`"
        )
    said: list[Any] = []
    for colour, (training, part) in zip((COLOURS[0], *COLOURS[2:]), cells.groupby("training")):
        lines = (
            part.assign(x=part.place / part.places).groupby("x").share.agg(["mean", "std"]).fillna(0.0).reset_index()
        )
        band(axis, lines.x, lines["mean"], lines["std"], colour, str(training), marker=".")
        early = part[part.place <= part.places / 2].groupby("key").share.sum().mean()
        said.append(f"{training} {early:.2f}")
    axis.set_title(f"{chosen} on {cells.task.iloc[0]}, last layer")
    return (
        f"Right: networks before and after training, band: one standard deviation over {cells.seed.nunique()} seeds; share of the "
        f"first half of the places: {', '.join(said)}."
    )
