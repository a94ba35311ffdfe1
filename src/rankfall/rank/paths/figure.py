"""Accuracy against path length, between the whole network and a guess: one panel per architecture and training."""

from collections import Counter
from typing import Any, Literal

from pandas import DataFrame, concat

from rankfall.annotations import Read
from rankfall.errors import RankfallError
from rankfall.rank.paths import shown
from rankfall.rank.paths.shown import LEAST
from rankfall.report.captions import describe_lines, describe_missing
from rankfall.report.colours import CHANCE, WHOLE
from rankfall.report.labels import many
from rankfall.report.lines import SHARE, band_across, legend_below, lines, steps, summary
from rankfall.report.looks import label
from rankfall.report.ranking import say_mean, say_span, sides
from rankfall.report.selection import choose, one_a_seed, select
from rankfall.report.style import Picture

POINT = ["panel", "paths", "length"]
HALF = 0.5  # share of the accuracy over chance that short paths must reach for the published shape
OUTCOMES = {  # outcome -> the words of the caption
    "holds": "holds",
    "does not hold": "does not hold",
    "cannot be told": "is undecided (its interval over seeds contains a limit, or there is one seed)",
    "cannot be seen": f"cannot be seen (the network itself is less than {LEAST:g} above chance)",
}
REFERENCES = {"whole": ("whole network", WHOLE, "-"), "chance": ("chance (no input seen)", CHANCE, "--")}


def paths(
    read: Read,
    *,
    task: str | None = None,
    architectures: list[str] = [],
    trainings: list[str] = [],
    depths: list[int] = [],
    evaluation: Literal["recomputed", "frozen"] = "recomputed",
    where: dict[str, Any] = {},
    columns: int = 4,
) -> Picture:
    """Draw the accuracy of sums of paths by length.

    Empty lists stand for all values, and the default task is the one with the most cells. Panels follow the order of the lists. `where`:
    only these cells, by any column.
    """
    requested = {"task": task, "architecture": architectures, "training": trainings, "depth": depths}
    table, whole, (task,) = choose(read("paths"), "paths", where, **requested)
    measured = sorted(table.evaluation.dropna().unique())
    if evaluation not in measured:
        available = ", ".join(measured) or "nothing"
        raise RankfallError(f"figure paths: evaluation {evaluation!r} was not measured; there is: {available}")
    one_a_seed(table, "paths", ["architecture", "training", "depth"])
    ranks = {name: rank for rank, name in enumerate(architectures or sorted(table.architecture.unique()))}
    networks = table[["architecture", "training", "depth"]].drop_duplicates().itertuples(index=False, name=None)
    order = sorted(
        networks, key=lambda network: (-network[2], network[1] != "published", network[1], ranks[network[0]])
    )
    titles: dict[tuple[str, str, int], str] = {}
    for name, training, depth in order:
        heading = label(name) if name == training else f"{label(name)}, {label(training)}"
        titles[name, training, depth] = f"{heading}, {many(depth, 'layer')}"
    named = [titles[network] for network in zip(table.architecture, table.training, table.depth)]
    table = table.assign(panel=named)
    table = table[(table.kind != shown.PATHS["kind"]) | (table.evaluation == evaluation)]
    by_seed = mean_by_seed(table)
    grid = lines(
        by_seed, "length", "accuracy", "line", steps([f"{n} paths" for n in sorted(by_seed.paths.unique())]),
        col="panel", col_order=list(titles.values()), col_wrap=columns, shared=(False, True), height=1.9, bounds=SHARE,
    )  # fmt: skip
    for title, panel in grid.axes_dict.items():
        for kind, (name, colour, style) in REFERENCES.items():
            values = table[(table.panel == title) & (table.kind == kind)].groupby("seed").accuracy.mean()
            band_across(panel, values, name, colour, style)
        panel.set_xticks(sorted(by_seed[by_seed.panel == title].length.unique()))
    grid.set(ylim=(0, 1.03), xlabel="path length (layers)", ylabel="accuracy per token")
    legend_below(grid)
    verdicts = {
        title: judge_shape(table[table.panel == title], by_seed[by_seed.panel == title]) for title in titles.values()
    }
    by = ["architecture", "training", "depth"]
    chance = say_span((numbers["chance"] for numbers in verdicts.values()), "{:.2f}".format)
    chance += ", by panel" * (" to " in chance)
    caption = (
        f"Accuracy on {label(task)} of sums of random paths of one length, with {evaluation} attention: {describe_lines(table, by)}. "
        f"The draw of paths makes {describe_draws(table)} of the bands' variance. "
        f"Dashed: chance, the best guess without the input ({chance}). {say_shapes(verdicts)}{describe_missing(table, by, whole=whole)}"
    )
    return Picture(grid.figure, caption, tabulate_paths(table, by_seed, verdicts))


def mean_by_seed(table: DataFrame) -> DataFrame:
    """Return a row per seed at each point: repeats are averaged within a seed."""
    by_seed = select(table, shown.PATHS).groupby([*POINT, "seed"]).accuracy.mean().reset_index()
    return by_seed.assign(line=[f"{count} paths" for count in by_seed.paths])


def describe_draws(table: DataFrame) -> str:
    """Write the share of the bands' variance that is due to the random choice of paths.

    Every seed draws its own paths, and repeats within a seed give the variance of a draw. The mean of R repeats has 1/R of their
    variance; the rest of the variance over seeds is that of the networks. Pooled over all points.
    """
    within = select(table, shown.PATHS).groupby([*POINT, "seed"]).accuracy.agg(["mean", "var", "count"]).reset_index()
    total = within.groupby(POINT)["mean"].var()
    if (within["count"] < 2).all() or not total.sum() > 0:
        return "an unknown share"
    share = (within["var"] / within["count"]).groupby([within[name] for name in POINT]).mean().sum() / total.sum()
    return f"{min(1.0, share):.0%}"


def judge_shape(table: DataFrame, by_seed: DataFrame) -> dict[str, Any]:
    """Return whether the published result holds, with its numbers: short paths give most of the accuracy, long ones fall to chance.

    It holds if the intervals of both numbers over seeds lie within their limits, and does not if one lies beyond. With one seed it is
    undecided.
    """
    numbers = shares(table, by_seed)
    whole, chance, short, long, carried = (numbers[name] for name in ("whole", "chance", "short", "long", "carried"))
    known = [(seed, part) for seed, part in by_seed.groupby("seed") if seed in set(table.seed)]
    seeds = DataFrame([shares(table[table.seed == seed], part) for seed, part in known])
    spread = float(seeds.carried.std()) if len(seeds) > 1 else 0.0
    margins = DataFrame({"carried": seeds.carried - HALF, "over": LEAST - seeds.over}).T
    within = sides(margins if seeds.carried.notna().all() else margins[[]], margins.abs().max(axis=1))
    decided = "holds" if (within == 1).all() else "does not hold" if (within == -1).any() else "cannot be told"
    outcome = decided if carried == carried else "cannot be seen"
    return {"whole network": whole, "chance": chance, "best of short paths": short, "best of long paths": long,
            "way from chance by short paths": carried, "its deviation over seeds": spread, "published shape": outcome}  # fmt: skip


def shares(table: DataFrame, by_seed: DataFrame) -> dict[str, float]:
    """Return the best accuracies of short and long paths, and the share of the accuracy over chance that short paths reach.

    The share is NaN if the network is less than LEAST above chance, as in the scorecard.
    """
    means = by_seed[by_seed.paths == by_seed.paths.max()].groupby("length").accuracy.mean()
    whole, chance = (float(table[table.kind == kind].accuracy.mean()) for kind in REFERENCES)
    depth = int(means.index.max())
    third = max(1, depth // 3)
    short, long = float(means[means.index <= third].max()), float(means[means.index > depth - third].max())
    carried = (short - chance) / (whole - chance) if whole - chance >= LEAST else float("nan")
    return {"whole": whole, "chance": chance, "short": short, "long": long, "over": long - chance, "carried": carried}


def say_shapes(verdicts: dict[str, dict[str, Any]]) -> str:
    """Write in how many panels the published shape holds; for a single panel, with the share of short paths."""
    shape = "In the published shape, short paths give at least half of the network's accuracy over chance, and long ones none. It"
    counts = Counter(numbers["published shape"] for numbers in verdicts.values())
    panels = f" of {len(verdicts)} panels"
    outcomes = "; ".join(
        f"{OUTCOMES[outcome]} in {count}{panels}" for outcome, count in sorted(counts.items(), reverse=True)
    )
    (numbers, *more) = verdicts.values()
    if more:
        return f"{shape} {outcomes}."
    short, deviation = (100 * numbers[name] for name in ("way from chance by short paths", "its deviation over seeds"))
    share = f": short ones give {say_mean(short, deviation, 0)}%" if short == short else ""
    return f"{shape} {OUTCOMES[numbers['published shape']]}{share}."


def tabulate_paths(table: DataFrame, by_seed: DataFrame, verdicts: dict[str, dict[str, Any]]) -> DataFrame:
    """Return means and deviations by length, of whole networks and of chance, with the verdict of each panel."""
    references = (
        table[table.kind.isin(list(REFERENCES))].groupby(["panel", "kind", "seed"]).accuracy.mean().reset_index()
    )
    drawn = concat([by_seed.assign(**shown.PATHS), references])
    by = summary(drawn, ["panel", "kind", "paths", "length"], "accuracy")
    about = DataFrame.from_dict(verdicts, orient="index").rename_axis("panel").reset_index()
    return by.merge(about, on="panel")
