"""Effect of depth on accuracy: the only finding that compares several settings, which differ in depth alone."""

from rankfall.annotations import DataFrame, Series
from rankfall.report.headlines import by_name
from rankfall.report.page.question import fit, list_names, name, percent
from rankfall.report.part_numbers import is_missing
from rankfall.report.ranking import say_span, weigh
from rankfall.report.settings import Setting, rows_at


def say_depth(scores: DataFrame, settings: list[Setting]) -> tuple[str, str]:
    """Return (sentence, setting without its depth) for the settings in which most architectures have two depths.

    The sentence compares the shallowest with the deepest, seed by seed. It is empty if no architecture has two depths, or if nothing
    differs.
    """
    families: dict[str, list[Setting]] = {}
    for setting in sorted(settings, key=lambda one: one.depth):
        families.setdefault(setting.but_depth, []).append(setting)
    pairs = {family: pair_depths(scores, members[0], members[-1]) for family, members in sorted(families.items())}
    chosen = max(pairs, key=lambda family: len(pairs[family]), default="")
    if not pairs.get(chosen):
        return "", ""
    from pandas import concat

    moves: dict[str, list[str]] = {"falls": [], "rises": []}
    for before, after in pairs[chosen]:
        moved = weigh(concat([before, after], axis=1, ignore_index=True).T, by_name("accuracy")).against(0)[1]
        values = f"{percent(before.accuracy)} to {percent(after.accuracy)}"
        if moved in (-1, 1):  # otherwise they tie, or have too few shared seeds
            moves["falls" if moved < 0 else "rises"].append(f"{name(before)} ({values})")
    said = [f"{move} in {list_names(each)}" for move, each in moves.items() if each]
    if not said:
        return "", ""
    first, last = families[chosen][0].depth, families[chosen][-1].depth
    chances = [row.accuracy_chance for pair in pairs[chosen] for row in pair if not is_missing(row.accuracy_chance)]
    more = [*(f", {one}" for one in said[1:]), f"; chance: {say_span(chances, percent)}" * bool(chances)]
    return fit(f"from depth {first} to {last} accuracy {said[0]}", *more), chosen


def pair_depths(scores: DataFrame, flat: Setting, deep: Setting) -> list[tuple[Series, Series]]:
    """Return the (shallow, deep) rows of each architecture that has an accuracy at both depths; none if the depths are the same."""
    here, there = (
        {
            (row.architecture, row.variant): row
            for _, row in rows_at(scores, one).iterrows()
            if row.accuracy == row.accuracy
        }
        for one in (flat, deep)
    )
    return [(row, there[place]) for place, row in here.items() if place in there and flat != deep]
