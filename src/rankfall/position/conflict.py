"""The conflict between distinguishing equal tokens and generalising to longer text, one row per architecture.

Weights whose rows sum to one give equal tokens equal outputs, so they fail the probe. Weights whose rows do not may have other sums at
another length. The tables are joined by the components that mix tokens, because only one of the tables names architectures.
"""

from typing import Any

from pandas import DataFrame

from rankfall.annotations import Read
from rankfall.errors import RankfallError
from rankfall.rank.orders.shown import OF_ATTENTION
from rankfall.report.captions import describe_ends, describe_lines, describe_missing
from rankfall.report.colours import CHANCE, colours
from rankfall.report.looks import label
from rankfall.report.part_numbers import find_beside
from rankfall.report.selection import choose, one_a_seed, select
from rankfall.report.style import WIDTH, Picture, canvas

TABLES = ["extrapolation", "probe", "orders"]


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
    requested = {"task": task, "training": training, "architecture": architectures}
    table, whole, (task, training) = choose(read("extrapolation"), "conflict", where, **requested)
    one_a_seed(table, "conflict", ["architecture"])
    probe = largest(largest(read("probe"), "tokens"), "depth")
    orders = largest(select(read("orders"), OF_ATTENTION), "heads", or_null=True)
    joined = [join_conflict(str(name), part, times, probe, orders) for name, part in table.groupby("architecture")]
    points = [point for point in joined if not point["missing"]]
    if not points:
        missing = "; ".join(f"{point['name']}: {point['missing']}" for point in joined)
        raise RankfallError(f"figure conflict: no architecture has both coordinates ({missing})")
    points.sort(key=lambda point: point["kept"])
    figure, axes = canvas(1, 3, WIDTH, 0.26 * len(points) + 1.1, sharey=True)
    palette = colours(point["name"] for point in points)
    titles = {
        "rows": "equal tokens told apart\n(share, random weights)",
        "kept": f"accuracy kept\nat {times:g} times the length",
        "accuracy": "masked accuracy\nat the trained length",
    }
    for panel, (number, title) in zip(axes[0], titles.items()):
        for row, point in enumerate(points):
            spread = [[min(point[f"{number}_deviation"], point[number])], [point[f"{number}_deviation"]]]
            colour = palette[point["name"]]
            panel.errorbar(point[number], row, xerr=spread, fmt="o", color=colour, markersize=5, linewidth=1.2)
        panel.set_title(title)
        panel.set_xlim(-0.03, 1.03) if number == "rows" else panel.set_xlim(left=0)
    axes[0][1].axvline(1.0, color=CHANCE, linestyle="--", linewidth=0.8)
    axes[0][0].set_yticks(range(len(points)), [label(point["name"]) for point in points])
    numbers = DataFrame(joined).sort_values("kept", ascending=False, na_position="last")
    ends = table[table.architecture.isin([point["name"] for point in points]) & (table.times == times)]
    caption = (
        f"Does attention that tells equal tokens apart also run on longer text? Masked accuracy on {label(task)}, training "
        f"{label(training)}, {describe_lines(table, ['architecture'])}. Architectures keep "
        f"{describe_ends(ends, 'kept', 2)} of their accuracy."
    )
    left_out = "; ".join(f"{label(point['name'])} ({point['missing']})" for point in joined if point["missing"])
    caption += f" Without a row here: {left_out}." * bool(left_out) + describe_missing(
        table, ["architecture"], whole=whole
    )
    return Picture(figure, caption, numbers)


def largest(table: DataFrame, column: str, or_null: bool = False) -> DataFrame:
    """Return the rows with the largest value of a column."""
    return table[(table[column] == table[column].max()) | (table[column].isna() & or_null)]


def join_conflict(name: str, part: DataFrame, times: float, probe: DataFrame, orders: DataFrame) -> dict[str, Any]:
    """Return the numbers of an architecture from all three tables, with the reason if one is missing."""
    about = part.iloc[0].to_dict()
    places, same_probe = find_beside(about, probe, "probe", "conflict")
    order, same_orders = find_beside(about, orders, "orders", "conflict")
    at = part[part.times == times]
    kept, trained = at.kept.dropna(), part[part.times == 1].accuracy.dropna()
    missing = ""
    if len(kept) < max(1, part.seed.nunique()):
        missing = next((reason for reason in at.refused if reason), f"not tested at {times:g} times the trained length")
    elif places is None or not places.untrained_rows >= 1:
        missing = "not in the table probe" if places is None else str(places.reason)
    order_known = order is not None and order.order == order.order and order.order is not None
    return {
        "name": name,
        "missing": missing,
        "rows": float("nan") if missing or places is None else float(places.untrained_rows) / float(places.tokens),
        "rows_deviation": 0.0,  # of random weights, which have no seeds here
        "kept": float(kept.mean()),
        "kept_deviation": float(kept.std()) if len(kept) > 1 else 0.0,
        "accuracy": float(trained.mean()),
        "accuracy_deviation": float(trained.std()) if len(trained) > 1 else 0.0,
        "order": float(order.order) if order is not None and order_known else float("nan"),
        "by_name": not same_probe or (order is not None and not same_orders),
    }
