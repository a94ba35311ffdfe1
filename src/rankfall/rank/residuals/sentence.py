"""Sentences on rank for the networks of a setting: orders of blocks, the smallest residual, and when it falls below a tenth."""

from functools import partial

from rankfall.annotations import DataFrame
from rankfall.rank.residuals.shown import STILL
from rankfall.report.headlines import Headline, by_name
from rankfall.report.labels import join
from rankfall.report.page.question import Question
from rankfall.report.page.sentences import at, count_seeds, list_names, list_undecided, name, write_number, write_tie
from rankfall.report.ranking import find_extreme, split_decidable
from rankfall.report.settings import Setting, check_one
from rankfall.report.style import power
from rankfall.report.written import write_float

NEAR = 0.1  # orders that differ by less count as equal
KEEPS = 0.5  # residual at the last layer from which on tokens count as kept apart
KNOWN = ("residual_last", "log_residual")
PER_LAYER = {
    3: "cubed",
    1: "multiplied by a factor",
    0: "kept from vanishing",
}  # effect of an order on a small residual
LACKS = {"residual": "skip connections", "norm": "norms", "mlp": "MLPs"}


def say_fastest(rows: DataFrame, setting: Setting, settings: int) -> str:
    """Write whose block has the highest order, whose residual is smallest at the last layer, and how many keep their tokens apart."""
    check_one(rows, setting)
    known = rows.dropna(subset=list(KNOWN), how="all")
    if not len(known):
        return ""
    said = (say_highest(known), say_smallest(known, setting), say_kept(rows))
    return at(setting, settings) + " ".join(part for part in said if part)


def say_highest(known: DataFrame) -> str:
    ordered = known.dropna(subset="block_order")
    if not len(ordered):
        return "no order of a block is known."
    highest = ordered.block_order.max()
    first = ordered[ordered.block_order > highest - NEAR]
    names = list_names([name(row) for _, row in first.iterrows()])
    some = f", among {len(ordered)} of {len(known)} whose order is known" if len(ordered) < len(known) else ""
    if len(first) < len(ordered):
        return f"the order of the block is highest in {names}: {say_order(highest)}{some}."
    return f"the order of the block is {say_order(highest)} in {names}{some}."


def say_order(order: float) -> str:
    """Write an order, without the rounding of a fit (0 is fitted as 1e-11 of either sign), and its effect on a small residual."""
    does = PER_LAYER.get(round(order), "") if abs(order - round(order)) < NEAR else ""
    return f"{round(order, 2) + 0.0:.2g}" + (f" (a small residual is {does} in every layer)" if does else "")


def say_smallest(known: DataFrame, setting: Setting) -> str:
    """Write the smallest residual: by the law, which has no floor, where float64 rounds a residual away and every network has a law."""
    hidden = known.residual_last.isna() | (known.residual_last_floor.astype(float) > 0)
    headline = by_name("log_residual" if hidden.any() and known.log_residual.notna().all() else "residual_last")
    known = known.dropna(subset=headline.name)
    if not len(known):
        return ""
    write = power if headline.unit == "log10" else partial(write_float, digits=headline.digits)
    ranked, alone = split_decidable(known, headline)
    shown = find_extreme(ranked, headline, setting, most=False) if len(ranked) else alone
    if len(known) == 1:
        said = f"{write_number(known.iloc[0], headline, write)} in {name(known.iloc[0])}"
    elif len(ranked):
        said = f"smallest in {write_tie(shown, headline, write)}"
    else:
        said = list_undecided(alone, headline, write)
    return f"The residual at the last layer is {said}{count_seeds(shown, headline)}{say_noise(shown, headline)}."


def say_noise(rows: DataFrame, headline: Headline) -> str:
    """Write the share of samples of each row whose residual is rounding noise, if any. A law has no floor."""
    noisy = rows[rows.residual_last_floor.astype(float) > 0].sort_values("architecture")
    if headline.name != "residual_last" or not len(noisy):
        return ""
    each = [f"{row.residual_last_floor:.0%} of {name(row)}" for _, row in noisy.iterrows()]
    return f"; of their samples these are rounding noise of float64: {list_names(each)}"


def say_kept(rows: DataFrame) -> str:
    """Write how many keep their tokens apart, with skip connections and without."""
    known = rows.dropna(subset="residual_last")
    groups = {"with skip connections": known.residual != "none", "without skip connections": known.residual == "none"}
    parts = [
        f"{int((known.residual_last[there] >= KEEPS).sum())} of {int(there.sum())} {what}"
        for what, there in groups.items()
        if there.any()
    ]
    return f"At least {KEEPS} is left in {' and in '.join(parts)}." if parts else ""


def say_orders(rows: DataFrame, setting: Setting, settings: int) -> str:
    """Write all orders of blocks, the highest first, and the networks whose block is not in the table of orders."""
    check_one(rows, setting)
    known = rows.dropna(subset=list(KNOWN), how="all")
    if not len(known):
        return ""
    groups: dict[str, list[str]] = {}
    for _, row in known.sort_values(["block_order", "architecture"], ascending=[False, True]).iterrows():
        order = say_order(row.block_order) if row.block_order == row.block_order else "not in the table of orders"
        missing = [what for part, what in LACKS.items() if row[part] == "none"]
        lacks = f" (no {', no '.join(missing)})" if missing else ""
        groups.setdefault(order, []).append(name(row) + lacks)
    return at(setting, settings) + "; ".join(f"{order}: {join(names)}" for order, names in groups.items()) + "."


def say_tenth(rows: DataFrame, setting: Setting, settings: int) -> str:
    """Write after which layer each architecture's residual is below a tenth, who stays above it, and of whom that is not known."""
    check_one(rows, setting)
    asked = rows[rows.depth_below_tenth_of.notna()]
    below = asked.dropna(subset="depth_below_tenth").sort_values(["depth_below_tenth", "architecture", "variant"])
    headline = by_name("depth_below_tenth")
    groups: dict[str, list[str]] = {}
    for _, row in below.iterrows():
        layer = write_number(row, headline, lambda value: f"{value:.1f}".removesuffix(".0"))
        groups.setdefault(f"layer {layer}", []).append(name(row))
    for _, row in asked.drop(below.index).iterrows():
        stays = STILL in row.depth_below_tenth_reason
        why = "above it in some or all seeds" if stays else f"not known, since {row.depth_below_tenth_reason}"
        groups.setdefault(why, []).append(name(row))
    seeds = count_seeds(below, headline) if len(below) else ""
    return at(setting, settings) + "; ".join(f"{what}: {join(names)}" for what, names in groups.items()) + f"{seeds}."


SENTENCES = (
    Question("Which architecture collapses fastest?", KNOWN, say_fastest, brief=True, place=10),
    Question("Which order has each block?", KNOWN, say_orders, place=20),
    Question(
        "At which layer does the residual fall below 0.1?", ("depth_below_tenth",), say_tenth, whole=True, place=30
    ),
)
