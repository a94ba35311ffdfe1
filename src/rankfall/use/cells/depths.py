"""Effect of depth on accuracy: the only finding that compares several settings, which differ in depth alone."""

from rankfall.annotations import DataFrame, Series
from rankfall.report.headlines import by_name
from rankfall.report.labels import join
from rankfall.report.page.sentences import find_side, is_are, list_names, name, percent, write_number
from rankfall.report.part_numbers import is_missing
from rankfall.report.ranking import UNSHARED, say_span, weigh
from rankfall.report.settings import Setting, rows_at, say_setting


def say_depth(scores: DataFrame, settings: list[Setting]) -> tuple[str, str]:
    """Return (settings without their depth, sentence) for the settings in which most architectures have two depths.

    The sentence compares the shallowest with the deepest. Both strings are empty if no architecture has two depths.
    """
    families: dict[str, list[Setting]] = {}
    for setting in sorted(settings, key=lambda one: one.depth):
        families.setdefault(setting.but_depth, []).append(setting)
    pairs = {
        family: pair_depths(scores, members[0], members[-1]) for family, members in families.items() if len(members) > 1
    }
    known = {family: pair for family, pair in pairs.items() if pair}
    if not known:
        return "", ""
    chosen = max(sorted(known), key=lambda family: len(known[family]))
    first, last = families[chosen][0].depth, families[chosen][-1].depth
    more = ", where most architectures have several depths" if len(known) > 1 else ""
    return (
        chosen,
        f"At {say_setting(chosen)}{more}: from depth {first} to {last} test accuracy {say_pairs(known[chosen])}."
        f"{say_chance(known[chosen], (first, last))}{say_others(scores, families[chosen], known[chosen])}",
    )


def say_chance(pairs: list[tuple[Series, Series]], depths: tuple[int, int]) -> str:
    """Write the accuracy of a guess, and which architectures are no better than it at each of the two depths."""
    headline = by_name("accuracy")
    guesses = [float(row.accuracy_chance) for pair in pairs for row in pair if not is_missing(row.accuracy_chance)]
    if not guesses:
        return ""
    parts = [f"the best guess that never sees an input has {say_span(guesses, percent)}"]
    for depth, rows in zip(depths, zip(*pairs)):
        sides = {name(row): find_side(row, headline) for row in rows if not is_missing(row.accuracy_chance)}
        for side in ("at", "below"):
            names = [one for one, found in sides.items() if found == side]
            if names:
                parts.append(f"at depth {depth} {list_names(names)} {is_are(len(names))} {side} that")
    text = "; ".join(parts)
    return f" {text[0].upper()}{text[1:]}."


def say_others(scores: DataFrame, settings: list[Setting], pairs: list[tuple[Series, Series]]) -> str:
    """Name the architectures of these settings that are not compared because they lack an accuracy at one of the two depths."""
    rows = (row for setting in settings for _, row in rows_at(scores, setting).iterrows())
    compared = {name(row) for row, _ in pairs}
    others = sorted({name(row) for row in rows} - compared)
    ends = f"depth {settings[0].depth} and {settings[-1].depth}"
    return f" Not compared, without an accuracy at both {ends}: {list_names(others)}." if others else ""


def pair_depths(scores: DataFrame, flat: Setting, deep: Setting) -> list[tuple[Series, Series]]:
    """Return the (shallow, deep) rows of each architecture that has an accuracy at both depths."""
    here, there = (
        {
            (row.architecture, row.variant): row
            for _, row in rows_at(scores, one).iterrows()
            if row.accuracy == row.accuracy
        }
        for one in (flat, deep)
    )
    return [(row, there[place]) for place, row in here.items() if place in there]


def say_pairs(pairs: list[tuple[Series, Series]]) -> str:
    """Write where accuracy falls, where it rises and where neither is decided, compared seed by seed."""
    headline, said = by_name("accuracy"), {"falls": [], "rises": []}  # type: ignore[var-annotated]
    from pandas import concat

    ties, alone = [], []
    for before, after in pairs:
        evidence = weigh(concat([before, after], axis=1, ignore_index=True).T, headline)
        moved = evidence.against(0)[1]
        values = " to ".join(write_number(row, headline, percent) for row in (before, after))
        if moved != moved:
            alone.append(f"{values} in {name(before)}")
        elif moved == 0:
            ties.append(name(before))
        else:
            said["falls" if moved < 0 else "rises"].append(f"{values} in {name(before)}")
    parts = [f"{moves} from {join(each)}" for moves, each in said.items() if each]
    if ties:
        parts.append(f"ties with itself in {join(ties)}")
    if alone:
        parts.append(f"goes from {join(alone)} ({UNSHARED})")
    counts = sorted({int(row.accuracy_seeds) for pair in pairs for row in pair})
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{'; it '.join(parts)} ({seeds} seed{'s' * (counts != [1])} each)"
