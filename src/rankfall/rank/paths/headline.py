"""Headline number: the share of a network's accuracy that its short paths reach alone."""

from rankfall.annotations import DataFrame
from rankfall.rank.paths.rows import CHANCE, LEAST, PATHS, RECOMPUTED, WHOLE
from rankfall.report.headlines import Headline
from rankfall.report.selection import select


def short(table: DataFrame) -> DataFrame:
    """Return the rows of short paths with the largest number of paths, of the whole network and of chance."""
    paths = select(table, RECOMPUTED)
    paths = paths[paths.paths == paths.groupby("key").paths.transform("max")]
    paths = paths[paths["length"] <= (paths.depth // 3).clip(lower=1)]
    return table[table.kind.isin([WHOLE["kind"], CHANCE["kind"]]) | table.index.isin(paths.index)]


def short_paths(rows: DataFrame) -> DataFrame:
    """Return the share of each network. Repeats are averaged first."""
    whole, chance = (select(rows, where).groupby("key").accuracy.mean() for where in (WHOLE, CHANCE))
    best = select(rows, PATHS).groupby(["key", "length"]).accuracy.mean().groupby("key").max()
    found = best.rename("best").to_frame().join(whole.rename("whole")).join(chance.rename("chance"))
    above = found.whole - found.chance
    number = ((found.best - found.chance) / above).where(above >= LEAST)
    sides = [f"{abs(value):.3f} {'below' if value < 0 else 'above'}" for value in above]
    why = [f"the network itself is {side} chance" if not value >= LEAST else "" for side, value in zip(sides, above)]
    return number.rename("number").to_frame().assign(why=why).reset_index()


HEADLINES = (
    Headline(
        "short_paths",
        "share of its accuracy from short paths",
        "how much of the way from chance to the whole network's accuracy paths through at most a third of the layers make by themselves, "
        "each with its own attention; no number where the network is less than 0.05 above chance",
        ("kind", "evaluation", "length", "paths", "accuracy"),
        short,
        short_paths,
        first="only trained",
        good=None,
        place=60,
    ),
)
