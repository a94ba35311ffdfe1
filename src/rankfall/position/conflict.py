"""The conflict between distinguishing equal tokens and generalising to longer text, one point per architecture.

Weights whose rows sum to one give equal tokens equal outputs, so they fail the probe. Weights whose rows do not may have other sums at
another length. The tables are joined by the components that mix tokens, because only one of the tables names architectures.
"""

from typing import Any

from matplotlib.lines import Line2D
from pandas import DataFrame

from rankfall.annotations import Axes, Figure, Read
from rankfall.errors import RankfallError
from rankfall.rank.orders.figure import SHADES, shade
from rankfall.rank.orders.shown import OF_ATTENTION
from rankfall.report.account import account
from rankfall.report.colours import DIRECTION
from rankfall.report.lines import POSITIVE, note_cut, say_cut
from rankfall.report.looks import label
from rankfall.report.part_numbers import find_beside
from rankfall.report.ranking import gather, say_extreme
from rankfall.report.selection import choose, one_a_seed, select
from rankfall.report.settings import say_differ
from rankfall.report.style import WIDTH, Picture, canvas

TABLES = ["extrapolation", "probe", "orders"]
AREAS = (40.0, 420.0)  # points^2: at the best masked accuracy, and at FAR or more below it
FAR = 0.10
SIMILAR = 0.05  # architectures within this distance of the best accuracy are compared by the share they keep
HIGH = 0.042  # height of a label as a share of the axis
ORDERS = {3: "3: doubly exponential", 1: "1: exponential", 0: "0: rows stay different", None: "not measured"}


def figure(
    read: Read,
    *,
    task: str | None = None,
    training: str | None = None,
    architectures: list[str] = [],
    times: float = 4,
    where: dict[str, Any] = {},
) -> Picture:
    """Draw the share of accuracy kept on longer text against the rows that the probe distinguishes.

    `times`: the tested length in trained lengths. `where`: only these rows of extrapolation, by any column. The probe's untrained
    networks and the orders are those of the largest sizes that were measured.
    """
    asked = {"task": task, "training": training, "architecture": architectures}
    table, whole, (task, training) = choose(read("extrapolation"), "conflict", where, **asked)
    one_a_seed(table, "conflict", ["architecture"])
    known = account(whole, table, ["architecture"])
    probe = largest(largest(read("probe"), "tokens"), "depth")
    orders = largest(select(read("orders"), OF_ATTENTION), "heads", or_null=True)
    found = [join_conflict(str(name), part, times, probe, orders) for name, part in table.groupby("architecture")]
    points = [point for point in found if not point["missing"]]
    if not points:
        missing = "; ".join(f"{point['name']}: {point['missing']}" for point in found)
        raise RankfallError(f"figure conflict: no architecture has both coordinates ({missing})")
    best = max(point["accuracy"] for point in points)
    figure, axes = canvas(1, 1, WIDTH, 4.2)
    (axis,) = axes[0]
    for point in sorted(points, key=lambda point: point["accuracy"]):  # small points over large ones
        down = min(point["deviation"], point["kept"])  # the share kept is at least 0
        size = area(best - point["accuracy"])
        bar = axis.errorbar(
            point["rows"],
            point["kept"],
            [[down], [point["deviation"]]],
            color="#999999",
            linewidth=1,
            capsize=size**0.5 / 2,  # half a point's width: bars of one column can be told apart
            zorder=1,
        )
        note_cut(bar.lines[2][0], point["rows"], point["kept"] - point["deviation"], POSITIVE)
        colour = SHADES[shade(point["order"])]
        axis.scatter(point["rows"], point["kept"], size, colour, edgecolors="#333333", linewidths=0.7, zorder=2)
    axis.set(
        xlabel="distinct rows of equal tokens at random weights, as a share of the tokens (probe)",
        ylabel=f"share of masked accuracy kept\nat {times:g} times the trained length",
        xlim=(-0.06, 1.45),
    )
    axis.set_xticks([0, 0.25, 0.5, 0.75, 1])
    draw_names(axis, points)
    keys(figure, {SHADES[shade(point["order"])]: point["order"] for point in points})
    numbers = DataFrame(found).drop(columns="each").sort_values("kept", ascending=False, na_position="last")
    said = caption(found, times, best, task, known.seeds, say_differ(table)) + say_cut(figure, "a bar")
    return Picture(figure, said + say_unplaced(found) + known.left_out, numbers)


def largest(table: DataFrame, column: str, or_null: bool = False) -> DataFrame:
    """Return the rows with the largest value of a column."""
    return table[(table[column] == table[column].max()) | (table[column].isna() & or_null)]


def join_conflict(name: str, part: DataFrame, times: float, probe: DataFrame, orders: DataFrame) -> dict[str, Any]:
    """Return the numbers of an architecture from all three tables, with the reason if one is missing."""
    about = part.iloc[0].to_dict()
    places, same_probe = find_beside(about, probe, "probe", "conflict")
    order, same_orders = find_beside(about, orders, "orders", "conflict")
    at = part[part.times == times]
    kept = at.kept.dropna()
    missing = ""
    if len(kept) < max(1, part.seed.nunique()):
        missing = next((why for why in at.refused if why), f"not tested at {times:g} times the trained length")
    elif places is None or not places.untrained_rows >= 1:
        missing = "not in the table probe" if places is None else str(places.reason)
    order_known = order is not None and order.order == order.order and order.order is not None
    return {
        "name": name,
        "missing": missing,
        "rows": float("nan") if missing or places is None else float(places.untrained_rows) / float(places.tokens),
        "kept": float(kept.mean()),
        "each": at.dropna(subset="kept").groupby("seed").kept.mean().astype(float).to_dict(),
        "deviation": float(kept.std()) if len(kept) > 1 else 0.0,
        "accuracy": float(part[part.times == 1].accuracy.mean()),
        "order": float(order.order) if order is not None and order_known else float("nan"),
        "by_name": not same_probe or (order is not None and not same_orders),
    }


def area(cost: float) -> float:
    small, large = AREAS
    return small + (large - small) * min(1.0, max(0.0, cost) / FAR)


def draw_names(axis: Axes, points: list[dict[str, Any]]) -> None:
    """Draw labels in a column to the right of all points, with connecting lines and without overlap."""
    low, high = axis.get_ylim()
    x = max(point["rows"] for point in points) + 0.06
    y = -float("inf")
    for point in sorted(points, key=lambda point: point["kept"]):
        y = max(point["kept"], y + HIGH * (high - low))
        axis.plot([point["rows"], x - 0.005], [point["kept"], y], color="#bbbbbb", linewidth=0.6, zorder=0)
        axis.text(x, y, label(point["name"]), fontsize=8, va="center")


def keys(figure: Figure, orders: dict[str, float]) -> None:
    """Draw the legends of colours and sizes."""

    def dot(size: float, colour: str, text: str) -> Line2D:
        style = {"marker": "o", "linestyle": "none", "markeredgecolor": "#333333", "markeredgewidth": 0.7}
        return Line2D([], [], markersize=size**0.5, markerfacecolor=colour, label=text, **style)  # type: ignore[arg-type]

    meanings = {SHADES[shade(float("nan") if p is None else p)]: text for p, text in ORDERS.items()}
    shown = [dot(60, colour, meanings.get(colour, f"{order:.1f}")) for colour, order in orders.items()]
    sizes = [dot(area(cost), "white", f"{100 * cost:.0f} points") for cost in (0.0, FAR / 2, FAR)]
    look_of = {"fontsize": 8, "title_fontsize": 8, "alignment": "left"}
    figure.legend(handles=shown, loc="outside right upper", title="order of contraction", **look_of)  # type: ignore[arg-type]
    figure.legend(
        handles=sizes,
        loc="outside right lower",
        title="masked accuracy below\nthe best, trained length",
        labelspacing=1.4,
        **look_of,  # type: ignore[arg-type]
    )


def say_unplaced(found: list[dict[str, Any]]) -> str:
    """Name the architectures that lack a coordinate, with the reason."""
    said = [f"{label(point['name'])} ({point['missing']})" for point in found if point["missing"]]
    return f" Without a place here: {'; '.join(said)}." if said else ""


def caption(found: list[dict[str, Any]], times: float, best: float, task: str, seeds: str, differ: str = "") -> str:
    points = [point for point in found if not point["missing"]]
    both = [point for point in points if point["rows"] == 1 and best - point["accuracy"] <= SIMILAR]
    alone = [point for point in points if point["rows"] < 0.5]
    several = any(len(point["each"]) > 1 for point in points)
    bars = (
        f"; bars, with ends as wide as their points: one standard deviation over {seeds}"
        if several
        else f", of {seeds}"
    )
    text = (
        f"Which of {len(points)} architectures{differ}{',' * bool(differ)} tells equal tokens apart at random weights (to the "
        "right) and keeps its masked "
        f"accuracy on {label(task)} at {times:g} times "
        f"the trained length (up{bars}; colours: {DIRECTION}); larger points are further "
        f"below the best accuracy, {best:.3f}. "
    )
    if differ:
        return text + "They are not ranked: numbers of different settings are not compared."
    if not both:
        return text + f"None has all rows distinct and an accuracy within {100 * SIMILAR:.0f} points of the best."
    text += (
        f"Of those with all rows distinct whose accuracy is within {100 * SIMILAR:.0f} points of the best, what is kept is "
        f"{say_most(both)}; of those with fewer than half their rows distinct "
    )
    return text + (f"it is {say_most(alone)}." if alone else "there is none.")


def say_most(points: list[dict[str, Any]]) -> str:
    """Write which architectures keep most, compared seed by seed."""
    each = [(point["name"], seed, kept) for point in points for seed, kept in point["each"].items()]
    return say_extreme(
        gather(DataFrame(each, columns=["architecture", "seed", "kept"]), "kept"), "{:.2f}".format, "most", most=True
    )
