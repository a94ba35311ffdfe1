"""The figure `together`: residual, rank of T, identity of tokens and own share by depth of the state, for each architecture."""

import itertools
from typing import Any

import pandas as pd
from pandas import DataFrame, concat

from rankfall.annotations import Read
from rankfall.errors import RankfallError
from rankfall.identity.attention_identity.shown import RANK, of_heads
from rankfall.identity.attribution.shown import JACOBIAN, OWN
from rankfall.identity.token_identity.shown import LINEAR, NEAREST, is_own
from rankfall.rank.residuals.shown import RESIDUAL
from rankfall.report.captions import describe_lines, describe_missing
from rankfall.report.colours import CHANCE, colours
from rankfall.report.lines import FLOOR, POSITIVE, SHARE, below, collect_labels, on, raise_zeros, summary
from rankfall.report.looks import label
from rankfall.report.ranking import say_mean, say_span
from rankfall.report.selection import choose, init_first, one_a_seed, select, select_finished
from rankfall.report.settings import say_differ
from rankfall.report.style import WIDTH, Picture, canvas

TABLES = ["residuals", "token_identity", "attention_identity", "attribution"]
NAMES = {
    "residual": "residual\n|res(X)| / |X|",
    "rank of T": "rank of T of the\nblock that reads it",
    "identity": "identity rate\n(linear map, cosine)",
    "own share": "own share\nof attribution",
}
BOUNDS = {"residual": POSITIVE, "rank of T": POSITIVE, "identity": SHARE, "own share": SHARE}
LOWER = "first layer below half"
CORRELATION = "rank correlation of {} and {}"
CELL = ["key", "architecture", "training", "seed"]


def figure(
    read: Read,
    *,
    task: str | None = None,
    trainings: list[str] = [],
    architectures: list[str] = [],
    tolerance: float = 1e-6,
    where: dict[str, Any] = {},
) -> Picture:
    """Draw the deepest networks of one task that are in all four tables, with a column per training. All architectures are drawn if none is
    named. `tolerance` is relative, for the rank of T."""
    tables = {name: select_finished(read(name), "together", where) for name in TABLES}
    columns = {"task": task, "training": trainings, "architecture": architectures}
    table, whole, (task,) = choose(read("token_identity"), "together", where, **columns)
    table = table[table.depth == table.depth.max()]
    by = ["architecture", "training"]
    one_a_seed(table, "together", by)
    table = table[table.key.isin(set.intersection(*(set(frame.key) for frame in tables.values())))]
    if table.empty:
        raise RankfallError(f"figure together: no network of task {task!r} is in all of the tables {', '.join(TABLES)}")
    quantities = {
        "residual": select(tables["residuals"], RESIDUAL),
        "rank of T": rank(tables["attention_identity"], tolerance),
        "identity": identity(table),
        "own share": own_share(tables["attribution"]),
    }
    cells = table[CELL].drop_duplicates()
    architectures = architectures or sorted(map(str, cells.architecture.unique()))
    shown = [name for name in trainings or init_first(cells.training) if name in set(cells.training)]
    values = {
        name: cells.merge(frame[["key", "layer", "value"]], on="key").groupby([*CELL, "layer"]).value.mean()
        for name, frame in quantities.items()
    }
    values = {name: frame.astype(float).reset_index() for name, frame in values.items()}
    drawn = values | {"residual": values["residual"].assign(value=raise_zeros(values["residual"].value))}
    within = select(table, {"candidates": NEAREST["candidates"]})
    figure, axes = canvas(len(NAMES), len(shown), WIDTH, 1.45 * len(NAMES) + 0.6, sharex=True, sharey="row")
    for (row, (name, title)), (column, training) in itertools.product(enumerate(NAMES.items()), enumerate(shown)):
        panel, part = axes[row][column], drawn[name]
        if name == "residual":
            panel.set_yscale("log")
        part = part[part.training == training]
        on(panel, part, "layer", "value", "architecture", colours(architectures), bounds=BOUNDS[name])
        if name == "residual":
            panel.axhline(FLOOR, color=CHANCE, linewidth=1, linestyle=":")
        if row >= 2:
            guess = within[within.training == training].chance.mean()
            panel.axhline(guess, color=CHANCE, linewidth=1, linestyle=":", label="one of the sentence's tokens")
        panel.set(xlabel="layer", ylabel=title, title=label(training) if row == 0 else "")
    below(figure, collect_labels(axes[2]), 5)
    related = correlations(values)
    caption = (
        f"Four ways to lose a token on {label(task)}, by layer: {describe_lines(table, by)}. Means of residuals are geometric. "
        f"T is the matrix that a head multiplies its weights by; its rank (tolerance {tolerance:g}) stands at the layer that T is made of. "
        f"Dotted, in the first row: where float64 rounds. Dotted, below: a guess among the tokens "
        f"({say_span(within.chance.astype(float), '{:.3g}'.format)}). {describe_finding(related, shown, say_differ(table))}"
        f"{describe_missing(table, by, whole=whole, why='not in all of the tables that this is drawn from')}"
    )
    return Picture(figure, caption, concat([tabulate_together(drawn), related]))


def tabulate_together(values: dict[str, DataFrame]) -> DataFrame:
    """Return a table of means by layer, with the first layer below half of the first value."""
    parts = []
    for name, lines in values.items():
        points = summary(lines, ["training", "architecture", "layer"], "value", log=name == "residual")
        points = points.rename(columns={"deviation of log10 over seeds": "deviation over seeds"}).assign(quantity=name)
        line = [points.training, points.architecture]
        halved = points["mean"] < points["mean"].groupby(line).transform("first") / 2
        parts.append(points.assign(**{LOWER: points.layer.where(halved).groupby(line).transform("min")}))
    return concat(parts)


def describe_finding(related: DataFrame, shown: list[str], differ: str = "") -> str:
    """Describe the correlation of residual and identity of tokens, by training, and what networks differ in besides the architecture."""
    of_pair = related[related.quantity == CORRELATION.format("residual", "identity")].set_index("training")
    phrases = []
    for training in (training for training in shown if training in of_pair.index):
        mean, deviation = of_pair.loc[training, ["mean", "deviation over seeds"]]
        text = say_mean(mean, deviation, 2) if mean == mean else "none, since one of them never changes"
        phrases.append(f"{text} ({label(training)})")
    answer = " and ".join(phrases) or "unknown"
    return f"The rank correlation of residual and identity rate, over layers and architectures{differ}, is {answer}."


def correlations(values: dict[str, DataFrame]) -> DataFrame:
    """Return Spearman correlations over layers and architectures, with mean and deviation over seeds."""
    rows = []
    for first, second in itertools.combinations(values, 2):
        merged = values[first].merge(values[second], on=[*CELL, "layer"], suffixes=("", "_other"))
        for (training, seed), part in merged.groupby(["training", "seed"]):
            related = part.value.rank().corr(part.value_other.rank())  # Spearman's; equal values share a rank
            rows.append((training, seed, CORRELATION.format(first, second), related))
    groups = DataFrame(rows, columns=["training", "seed", "quantity", "mean"]).groupby(["training", "quantity"])["mean"]
    return (
        groups.agg(["mean", "std", "count"]).set_axis(["mean", "deviation over seeds", "seeds"], axis=1).reset_index()
    )


def rank(table: DataFrame, tolerance: float) -> DataFrame:
    """Return (key, layer, value) of the rank of T, mean over heads and samples. The block of layer l computes T from the state of layer l
    - 1."""
    part = select(table, RANK | {"tolerance": tolerance})
    part = of_heads(part[part.value.notna()])
    return part.groupby(["key", "layer"]).value.mean().reset_index().assign(layer=lambda rows: rows.layer - 1)


def identity(table: DataFrame) -> DataFrame:
    """Return (key, layer, value) of identity rates: linear maps, trained and tested by cosine among the tokens of the sentence. Layer 0 has
    the rates of the embeddings themselves."""
    rows = select(table, NEAREST)
    mapped = select(rows[is_own(rows)], LINEAR)
    start = select(rows, {"map": "naive", "layer": 0})
    return rows[rows.index.isin([*mapped.index, *start.index])].rename(columns={"rate": "value"})


def own_share(table: DataFrame) -> DataFrame:
    """Return (key, layer, value) of own shares: Jacobian blocks, all tokens kept. At layer 0 a token's own block is the identity and all
    others are zero, so the share is 1."""
    rows = select(table, JACOBIAN | OWN)
    rows = rows[rows.value.notna()][["key", "layer", "value"]]
    return pd.concat([rows[["key"]].drop_duplicates().assign(layer=0, value=1.0), rows])
