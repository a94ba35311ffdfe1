"""Which architecture of a setting collapses fastest: by the order of its block, then by the law, then by the residual."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankfall.report.headlines import by_name
from rankfall.report.page.sentences import at, count_seeds, join, listed, many, name, write_number, write_tie
from rankfall.report.ranking import find_extreme
from rankfall.report.settings import Setting, check_one
from rankfall.report.style import power

if TYPE_CHECKING:
    from pandas import DataFrame, Series

NEAR = 0.1  # orders that differ by less are one
KEEPS = 0.5  # residual at the last layer
PER_LAYER = {3: "cubed", 1: "multiplied by a factor", 0: "kept from vanishing"}  # what orders do to a small residual


def say_fastest(rows: DataFrame, setting: Setting, settings: int) -> str:
    """Of the blocks with the highest order, the one whose residual is smallest."""
    check_one(rows, setting)
    known = rows[rows.residual_last.notna() | rows.log_residual.notna()]
    ordered, unordered = known[known.block_order.notna()], known[known.block_order.isna()]
    answer = at(setting, settings)
    if len(ordered):
        highest = ordered.block_order.max()
        first = ordered[ordered.block_order > highest - NEAR]
        answer += f"{say_order(first, highest)} {say_smallest(first, setting)}"
        rest = ordered.drop(first.index).sort_values(["block_order", "residual_last"], ascending=[False, True])
        lower = [f"{name(row)} {row.block_order:.2g}" for _, row in rest.iterrows()]
        answer += f" Lower orders: {listed(lower)}." if lower else ""
    if len(unordered):
        one = "The table of orders has no such block for" if len(ordered) else "no order of a block is known;"
        answer += f" {one} {say_unordered(unordered, setting, bool(len(ordered)))}"
    return answer.replace("  ", " ") + say_kept(known)


def say_order(first: DataFrame, order: float) -> str:
    said = [f"{name(row)}{without(row)}" for _, row in first.iterrows()]
    does = PER_LAYER.get(round(order), "") if abs(order - round(order)) < NEAR else ""
    have = "has" if len(said) == 1 else "have"
    return f"{listed(said)} {have} the highest order, {order:.2g}" + (
        f" (a small residual is {does} in every layer)." if does else "."
    )


def say_smallest(rows: DataFrame, setting: Setting) -> str:
    """Of rows with one order: by the law where all have it, else by the residual."""
    if len(rows) == 1:
        return say_values(rows.iloc[0])
    headline = by_name("log_residual" if rows.log_residual.notna().all() else "residual_last")
    known = rows[rows[headline.name].notna()]
    if not len(known):
        return ""
    least = find_extreme(known, headline, setting, most=False)
    if len(least) == 1:
        return f"Of these {say_values(least.iloc[0])}"
    named = listed(sorted(name(row) for _, row in least.iterrows()))
    return f"Of these {named} tie at the last layer, within their deviation over seeds{count_seeds(least, headline)}."


def say_values(row: Series) -> str:
    """What is left of the residual of one architecture at the last layer, and after how many layers it is halved."""
    headline = by_name("log_residual" if row.log_residual == row.log_residual else "residual_last")
    said = f"{name(row)} is left with a residual of {say_left(row)} at the last layer"
    if row.halving_depth == row.halving_depth:
        after = f"after {write_number(row, by_name('halving_depth'), '{:.1f}'.format)} layers"
        said += f", half of the embedding's {after if row.halving_depth >= 1 else 'within the first layer'}"
    return f"{said}{count_seeds(row.to_frame().T, headline)}."


def say_left(row: Series) -> str:
    """The residual at the last layer, without rounding where that is known."""
    if row.log_residual == row.log_residual:
        return power(row.log_residual)
    if row.residual_last_floor == 1:
        return "no more than float64's rounding"
    return write_number(row, by_name("residual_last"), "{:.3f}".format)


def say_unordered(rows: DataFrame, setting: Setting, others: bool) -> str:
    """Those whose block the table of orders does not have, by their residual."""
    headline = by_name("residual_last")
    known = rows[rows.residual_last.notna()]
    if not len(known):
        return f"{listed([name(row) for _, row in rows.iterrows()])}."
    values = known.sort_values(["residual_last", "architecture", "variant"])
    if others:
        each = [f"{name(row)} (residual {say_left(row)})" for _, row in values.iterrows()]
        return f"{listed(each)}."
    least = find_extreme(known, headline, setting, most=False)
    return f"the residual is smallest in {write_tie(least, headline, '{:.3f}'.format)}{count_seeds(least, headline)}."


def without(row: Series) -> str:
    """What a network lacks, for those who do not know its name."""
    lacks = {"residual": "skip connections", "norm": "norms", "mlp": "MLPs"}
    missing = [what for part, what in lacks.items() if getattr(row, part) == "none"]
    return f" (no {', no '.join(missing)})" if missing else ""


def say_kept(known: DataFrame) -> str:
    """How many keep their tokens apart, with skip connections and without."""
    known = known[known.residual_last.notna()]
    parts = [
        f"{int((part.residual_last >= KEEPS).sum())} of {len(part)} {what}"
        for what, part in (
            ("with skip connections", known[known.residual != "none"]),
            ("without", known[known.residual == "none"]),
        )
        if len(part)
    ]
    return f" A residual of at least {KEEPS} is left at the last layer of {' and of '.join(parts)}." if parts else ""


def say_tenth(rows: DataFrame, setting: Setting, settings: int) -> str:
    """After which layer each architecture's residual is below a tenth, and of which it never is."""
    check_one(rows, setting)
    asked = rows[rows.depth_below_tenth_of.notna()]
    below = asked[asked.depth_below_tenth.notna()].sort_values(["depth_below_tenth", "architecture", "variant"])
    layers: dict[str, list[str]] = {}
    for _, row in below.iterrows():
        layers.setdefault(f"{row.depth_below_tenth:.1f}".removesuffix(".0"), []).append(name(row))
    each = [f"layer {layer}: {join(names)}" for layer, names in layers.items()]
    said = f"{'; '.join(each)}{count_seeds(below, by_name('depth_below_tenth'))}. " if each else ""
    stay = len(asked) - len(below)
    if stay:
        said += f"In {stay} of {many(len(asked), 'architecture')} at least one seed never falls below it; the scorecard says why."
    return at(setting, settings) + said.strip()
