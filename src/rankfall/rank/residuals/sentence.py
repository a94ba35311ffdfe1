"""Sentences on which architecture of a setting collapses fastest.

Architectures are compared by the order of their block, then by the residual, or by the law where rounding hides the residual.
"""

import re
from collections.abc import Callable
from functools import partial

from rankfall.annotations import DataFrame, Series
from rankfall.rank.residuals.shown import STILL
from rankfall.report.headlines import Headline, by_name
from rankfall.report.labels import join
from rankfall.report.page.question import Question
from rankfall.report.page.sentences import at, count_seeds, list_names, list_undecided, name, write_number, write_tie
from rankfall.report.part_numbers import is_missing
from rankfall.report.ranking import find_extreme, split_decidable
from rankfall.report.settings import Setting, check_one
from rankfall.report.style import power
from rankfall.report.written import write_float

NEAR = 0.1  # orders that differ by less count as equal
KEEPS = 0.5  # residual at the last layer from which on tokens count as kept apart
FIRST = 3  # largest number of names in the first finding
PER_LAYER = {
    3: "cubed",
    1: "multiplied by a factor",
    0: "kept from vanishing",
}  # effect of each order on a small residual
UNKNOWN = "not in the table of orders"


def say_fastest(rows: DataFrame, setting: Setting, settings: int) -> str:
    """Write three short sentences on which architecture collapses fastest.

    They name the blocks of the highest order, the smallest residual among these, and how many architectures keep tokens apart.
    `say_orders` writes all orders.
    """
    check_one(rows, setting)
    known = rows[rows.residual_last.notna() | rows.log_residual.notna()]
    if not len(known):
        return ""
    ordered = known[known.block_order.notna()]
    first = ordered[ordered.block_order > ordered.block_order.max() - NEAR] if len(ordered) else ordered
    if len(ordered) and lower_without(known, first):
        only = f"the order of the block is known of {len(ordered)} of {len(known)} alone, and one of the others is left with less"
        said = f"{only}: {say_unordered(known, setting)}"
    elif len(ordered):
        said = f"{say_first(first, len(ordered), len(known))} {say_smallest(first, setting)}".strip()
    else:
        said = f"no order of a block is known; {say_unordered(known, setting)}"
    return at(setting, settings) + said + say_kept(rows)


def lower_without(known: DataFrame, first: DataFrame) -> bool:
    """Check whether a row without an order has a smaller residual than all rows of the highest order. Its order may be even higher."""
    column = choose_number(known).name
    rest = known[known.block_order.isna()][column].astype(float).min()
    return bool(rest < first[column].astype(float).min())


def choose_number(rows: DataFrame) -> Headline:
    """Return the number by which residuals are compared.

    This is the residual at the last layer, as in the scorecard. If rounding of float64 hides it and all rows have a law, it is the law,
    which uses other samples and another mean.
    """
    hidden = rows.residual_last.isna() | (rows.residual_last_floor.astype(float) > 0)
    return by_name("log_residual" if hidden.any() and rows.log_residual.notna().all() else "residual_last")


def say_first(first: DataFrame, ordered: int, known: int) -> str:
    """Write whose order is highest, and of how many."""
    names = [name(row) for _, row in first.iterrows()]
    order, some = say_order(first.block_order.max()), ordered < known
    if known == 1:
        return f"{names[0]} is the only one here, and the order of its block is {order}."
    if len(first) == known:
        return f"all {known} have blocks of the same order ({order}), so none is first by that."
    if len(first) == ordered > 1:
        return f"all {ordered} of {known} whose order is known have blocks of the same order ({order}), so none is first by that."
    of = (
        f" among the {ordered} of {known} whose order is known"
        if some
        else f" of {known}"
        if known > len(first)
        else ""
    )
    do = "collapses" if len(names) == 1 else "collapse"
    return f"by the order of the block ({order}) {list_names(names, FIRST)} {do} fastest{of}."


def say_order(order: float) -> str:
    """Write an order, without the rounding of a fit (0 is fitted as 1e-11 of either sign), and its effect on a small residual."""
    does = PER_LAYER.get(round(order), "") if abs(order - round(order)) < NEAR else ""
    return f"{round(order, 2) + 0.0:.2g}" + (f": a small residual is {does} in every layer" if does else "")


def say_smallest(rows: DataFrame, setting: Setting) -> str:
    """Write the smallest residual among rows with one order."""
    headline = choose_number(rows)
    known = rows[rows[headline.name].notna()]
    if not len(known):
        return ""
    of = "Of these " if len(rows) > 1 else ""
    ranked, alone = split_decidable(known, headline)
    if len(known) > 1 and not len(ranked):
        return f"Their residuals at the last layer: {list_undecided(alone, headline, choose_words(headline))}{say_noise(alone, headline)}."
    least = find_extreme(ranked, headline, setting, most=False)
    seeds = count_seeds(least, headline)
    if len(least) == 1:
        (row,) = (row for _, row in least.iterrows())
        return f"{of}{name(row)} is left with a residual of {say_left(row, headline)} at the last layer{seeds}{say_noise(least, headline)}."
    named = list_names(sorted(name(row) for _, row in least.iterrows()), FIRST)
    return f"{of}{named} tie at the last layer{seeds}{say_noise(least, headline)}."


def say_noise(rows: DataFrame, headline: Headline) -> str:
    """Write the share of samples of each row whose residual is rounding noise, if any. A law has no floor."""
    if headline.name != "residual_last":
        return ""
    noisy = rows[rows.residual_last_floor.astype(float) > 0]
    if not len(noisy):
        return ""
    each = [f"{row.residual_last_floor:.0%} of {name(row)}" for _, row in noisy.sort_values("architecture").iterrows()]
    return f"; of their samples these are rounding noise of float64: {list_names(each)}"


def say_left(row: Series, headline: Headline | None = None) -> str:
    """Write the residual at the last layer: by this headline, or by default the one that `choose_number` chooses for the row."""
    if (headline or choose_number(row.to_frame().T)).name == "log_residual":
        return power(row.log_residual)
    return write_number(row, by_name("residual_last"), choose_words(by_name("residual_last")))


def choose_words(headline: Headline) -> Callable[[float], str]:
    """Return the function that writes a residual."""
    return power if headline.unit == "log10" else partial(write_float, digits=headline.digits)


def say_unordered(rows: DataFrame, setting: Setting) -> str:
    """Write the smallest residual of all rows, if the table of orders has none of their blocks."""
    headline = choose_number(rows)
    known = rows[rows[headline.name].notna()]
    if not len(known):
        return (
            f"there is a law of {list_names([name(row) for _, row in rows.iterrows()], FIRST)}, and no number of all."
        )
    write = choose_words(headline)
    if len(known) == 1:
        (row,) = (row for _, row in known.iterrows())
        what = "only one here" if len(rows) == 1 else "only one with this number"
        left = f"with a residual of {say_left(row, headline)} at the last layer"
        return f"{name(row)} is the {what}, {left}{count_seeds(known, headline)}{say_noise(known, headline)}."
    ranked, alone = split_decidable(known, headline)
    if not len(ranked):
        return f"residuals at the last layer are {list_undecided(alone, headline, write)}{say_noise(alone, headline)}."
    least = find_extreme(ranked, headline, setting, most=False)
    said = (
        f"{name(least.iloc[0])} ({say_left(least.iloc[0], headline)})"
        if len(least) == 1
        else write_tie(least, headline, write)
    )
    return f"the residual is smallest in {said}{count_seeds(least, headline)}{say_noise(least, headline)}."


def say_orders(rows: DataFrame, setting: Setting, settings: int) -> str:
    """Write all orders of blocks, the highest first, and the residuals of rows whose block is not in the table of orders."""
    check_one(rows, setting)
    known = rows[rows.residual_last.notna() | rows.log_residual.notna()]
    if not len(known):
        return ""
    ordered = known[known.block_order.notna()].sort_values(["block_order", "architecture"], ascending=[False, True])
    groups: list[list[Series]] = []
    for _, row in ordered.iterrows():
        if groups and groups[-1][0].block_order - row.block_order < NEAR:
            groups[-1].append(row)
        else:
            groups.append([row])
    said = [
        f"{join(f'{name(row)}{say_lacking(row)}' for row in group)} ({say_order(group[0].block_order)})"
        for group in groups
    ]
    rest = known[known.block_order.isna()].sort_values(["residual_last", "architecture"])
    if len(rest):
        each = [
            f"{name(row)} (residual {say_left(row)})"
            for _, row in rest.iterrows()
            if row.residual_last == row.residual_last
        ]
        each += [name(row) for _, row in rest.iterrows() if row.residual_last != row.residual_last]
        said.append(f"{UNKNOWN}: {join(each)}")
    return f"{at(setting, settings)}{'; '.join(said)}."


def say_lacking(row: Series) -> str:
    """Name the parts that a network lacks, for readers who do not know its name."""
    lacks = {"residual": "skip connections", "norm": "norms", "mlp": "MLPs"}
    missing = [what for part, what in lacks.items() if getattr(row, part) == "none"]
    return f" (no {', no '.join(missing)})" if missing else ""


def say_kept(rows: DataFrame) -> str:
    """Write how many keep their tokens apart, with skip connections and without, and how many have no residual at the last layer."""
    asked = rows[rows.residual_last_of.notna()]
    known = asked[asked.residual_last.notna()]
    skips, bare = known[known.residual != "none"], known[known.residual == "none"]
    parts = [
        f"{int((part.residual_last >= KEEPS).sum())} of {len(part)} {what}"
        for what, part in (
            ("with skip connections", skips),
            ("without" if len(skips) else "without skip connections", bare),
        )
        if len(part)
    ]
    gone = len(asked) - len(known)
    none = f"; {gone} {'has' if gone == 1 else 'have'} no residual there" if gone else ""
    return (
        f" A residual of at least {KEEPS} is left at the last layer of {' and of '.join(parts)}{none}." if parts else ""
    )


def say_tenth(rows: DataFrame, setting: Setting, settings: int) -> str:
    """Write after which layer each architecture's residual is below a tenth.

    Also name the architectures that never fall below it or have no residual.
    """
    check_one(rows, setting)
    asked = rows[rows.depth_below_tenth_of.notna()]
    below = asked[asked.depth_below_tenth.notna()].sort_values(["depth_below_tenth", "architecture", "variant"])
    layers: dict[str, list[str]] = {}
    for _, row in below.iterrows():
        layers.setdefault(say_layer(row), []).append(name(row))
    each = [f"{layer}: {join(names)}" for layer, names in layers.items()]
    said = f"{'; '.join(each)}{count_seeds(below, by_name('depth_below_tenth'))}. " if each else ""
    others = asked.drop(below.index)
    stay = others[others.depth_below_tenth_reason.str.contains(STILL, regex=False)]
    never: dict[str, list[str]] = {}
    for _, row in stay.iterrows():
        never.setdefault(count_never(row.depth_below_tenth_reason), []).append(name(row))
    said += "".join(f"Of {list_names(names)} {many_seeds} below it. " for many_seeds, names in never.items())
    reasons: dict[str, list[str]] = {}
    for _, row in others.drop(stay.index).iterrows():
        reasons.setdefault(row.depth_below_tenth_reason, []).append(name(row))
    said += " ".join(f"Of {join(names)} nobody can say: {why}." for why, names in reasons.items())
    return at(setting, settings) + said.strip()


def count_never(reason: str) -> str:
    """Write how many finished seeds never fall so far, by the reason's counts. A reason without counts is that of a single seed."""
    found = re.search(rf"{STILL}.*?\(in (\d+) of (\d+) seeds", reason)
    count, seeds = map(int, found.groups()) if found else (1, 1)
    if count == seeds:
        return "no seed falls" if seeds > 1 else "the one seed never falls"
    return f"{count} of {seeds} seeds never {'falls' if count == 1 else 'fall'}"


def say_layer(row: Series) -> str:
    """Write the layer that all seeds have, or the mean over seeds with its deviation."""
    layer, deviation = f"{row.depth_below_tenth:.1f}".removesuffix(".0"), row.depth_below_tenth_deviation
    several = not is_missing(deviation) and deviation > 0
    return f"layers {layer} ± {deviation:.1f} (mean over seeds)" if several else f"layer {layer}"


KNOWN = ("residual_last", "log_residual")
SENTENCES = (
    Question("Which architecture collapses fastest?", KNOWN, say_fastest, brief=True, place=10),
    Question("Which order has each block?", KNOWN, say_orders, place=20),
    Question(
        "At which layer does the residual fall below 0.1?", ("depth_below_tenth",), say_tenth, whole=True, place=30
    ),
)
