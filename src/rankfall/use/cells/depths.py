"""Effect of depth on accuracy: the only finding that compares several settings, which differ in depth alone."""

from pandas import concat

from rankfall.annotations import DataFrame, Series
from rankfall.report.headlines import by_name
from rankfall.report.labels import join
from rankfall.report.page.sentences import name, percent, write_number
from rankfall.report.ranking import weigh
from rankfall.report.settings import Setting, rows_at, say_setting

Pairs = list[tuple[Series, Series]]  # rows of an architecture at the smallest and at the largest depth
UNDECIDED = "is not decided, with fewer than two shared seeds,"
MOVES = {-1.0: "falls", 1.0: "rises", 0.0: "ties with itself"}


def say_depth(scores: DataFrame, settings: list[Setting]) -> tuple[str, str]:
    """Return (settings without their depth, sentence) for the settings in which most architectures have two depths.

    The sentence compares the shallowest with the deepest. Both strings are empty if no architecture has two depths.
    """
    families: dict[str, list[Setting]] = {}
    for setting in sorted(settings, key=lambda one: one.depth):
        families.setdefault(setting.but_depth, []).append(setting)
    pairs = {family: pair_depths(scores, members[0], members[-1]) for family, members in families.items()}
    chosen = max(sorted(pairs), key=lambda family: len(pairs[family]), default="")
    if not pairs.get(chosen):
        return "", ""
    first, last = families[chosen][0].depth, families[chosen][-1].depth
    more = ", where most architectures have several depths" if sum(map(bool, pairs.values())) > 1 else ""
    return (
        chosen,
        f"At {say_setting(chosen)}{more}: from depth {first} to {last} test accuracy {say_pairs(pairs[chosen])}.",
    )


def pair_depths(scores: DataFrame, flat: Setting, deep: Setting) -> Pairs:
    """Return the (shallow, deep) rows of each architecture that has an accuracy at both depths; empty for a single depth."""
    if flat.depth == deep.depth:
        return []
    here, there = (
        {(row.architecture, row.variant): row for _, row in rows_at(scores, one).dropna(subset="accuracy").iterrows()}
        for one in (flat, deep)
    )
    return [(row, there[place]) for place, row in here.items() if place in there]


def say_pairs(pairs: Pairs) -> str:
    """Write where accuracy falls, where it rises and where neither is decided, compared seed by seed."""
    headline = by_name("accuracy")
    said: dict[str, list[str]] = {}
    for before, after in pairs:
        moved = weigh(concat([before, after], axis=1, ignore_index=True).T, headline).against(0)[1]
        values = " to ".join(write_number(row, headline, percent) for row in (before, after))
        text = name(before) if moved == 0 else f"{values} in {name(before)}"
        said.setdefault(MOVES.get(moved, UNDECIDED), []).append(text)
    counts = sorted({int(row.accuracy_seeds) for pair in pairs for row in pair})
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    parts = [f"{moves} {'in' if moves == MOVES[0.0] else 'from'} {join(each)}" for moves, each in said.items()]
    return f"{'; it '.join(parts)} ({seeds} seed{'s' * (counts != [1])} each)"
