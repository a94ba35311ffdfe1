"""Declare the table `paths` and what is shown of it: accuracy of paths by length, of the whole model, and of guessing."""

from rankfall.annotations import DataFrame
from rankfall.report.headlines import Headline
from rankfall.report.lines import SHARE
from rankfall.report.page.chart import NETWORK, Chart, Level
from rankfall.report.page.question import ask_range, percent
from rankfall.report.published_numbers import read_published
from rankfall.report.schema import Table, declare_table
from rankfall.report.selection import select


def columns() -> Table:
    return declare_table(
        "paths",
        "each cell, evaluation, path length, number of paths and repeat; the whole model and chance have rows of their own",
        """
        kind text: path (a set of paths), whole (the whole model) or chance (a guess without input)
        evaluation text?: attention recomputed from the path's own states, or frozen: the whole model's; null: chance
        length int? [layers]: blocks in which it takes a head; null unless a path
        paths int?: how many paths were summed; null unless a path
        repeat int?: which random set of paths; null unless a path
        accuracy float nan: accuracy on the test set, per token
        """,
        key="kind evaluation length paths repeat",
    )


PATHS = {"kind": "path"}
WHOLE = {"kind": "whole"}
CHANCE = {"kind": "chance"}
RECOMPUTED = {**PATHS, "evaluation": "recomputed"}  # each path with its own attention
LEAST = 0.05  # accuracy over chance below which shares would be noise


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
    accuracies = best.rename("best").to_frame().join(whole.rename("whole")).join(chance.rename("chance"))
    above = accuracies.whole - accuracies.chance
    number = ((accuracies.best - accuracies.chance) / above).where(above >= LEAST)
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


CHARTS = (
    Chart(
        "paths",
        "Accuracy of paths by their length",
        "A path goes through one head of some layers and around the others by their skip connections. Accuracy of the sum of a few random "
        "paths of each length alone: by the theory of rank collapse short ones do most.",
        "length",
        "accuracy",
        "layers that a path goes through",
        "accuracy",
        choose=(*NETWORK, "evaluation", "paths"),
        where=PATHS,
        within=SHARE,
        beside=(
            Level("chance", where=CHANCE),
            Level("the whole network", where=WHOLE, shared=False),
        ),
        place=40,
    ),
)


SENTENCES = (
    ask_range(
        "Do short paths do the work?",
        "short_paths",
        "paths through a third of the layers or fewer give the largest share of accuracy in",
        percent,
        place=70,
    ),
)


DATA = ["rank/paths/published.csv"]
PUBLISHED = read_published(__file__)
