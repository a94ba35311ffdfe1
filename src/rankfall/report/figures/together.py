"""Do rank and identity die together? Residual, rank of T, identity of tokens and own share by depth of the state, for each architecture."""

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rankfall.errors import RankfallError
from rankfall.report.selection import among, finished, one_a_seed, one_of
from rankfall.report.style import CHANCE, Picture, band, canvas, palette

if TYPE_CHECKING:
    from pandas import DataFrame, Series

TABLES = ["residuals", "token_identity", "attention_identity", "attribution"]
NAMES = {
    "residual": "residual |res(X)| / |X|",
    "rank of T": "numerical rank of T\nof the block that reads it",
    "identity": "identity rate\n(linear map, cosine)",
    "own share": "own share of attribution",
}
CELL = ["key", "architecture", "training", "seed"]


def together(
    read: "Callable[[str], DataFrame]",
    *,
    task: str | None = None,
    trainings: list[str] = [],
    architectures: list[str] = [],
    tolerance: float = 1e-6,
    where: dict[str, Any] = {},
) -> Picture:
    """The deepest networks of one task that are in all four tables, of all architectures if none is named; one column a training.
    `tolerance`: relative, of the rank of T.
    """
    tables = {name: finished(read(name), "together", where) for name in TABLES}
    table, task = one_of(tables["token_identity"], "together", "task", task)
    table = among(table, "together", "training", trainings)
    table = among(table, "together", "architecture", architectures)
    table = table[table.depth == table.depth.max()]
    one_a_seed(table, "together", ["architecture", "training"])
    common = set.intersection(*(set(one.key) for one in tables.values()))
    table = table[table.key.isin(common)]
    if table.empty:
        raise RankfallError(f"figure together: no network of task {task!r} is in all of the tables {', '.join(TABLES)}")
    values = {
        "residual": residual(tables["residuals"]),
        "rank of T": rank(tables["attention_identity"], tolerance),
        "identity": identity(table),
        "own share": own_share(tables["attribution"]),
    }
    cells = table[CELL].drop_duplicates()
    architectures = architectures or sorted(map(str, cells.architecture.unique()))
    values = {name: cells.merge(found, on="key") for name, found in values.items()}
    shown = trainings or sorted(
        (str(name) for name in cells.training.unique()), key=lambda name: (name != "init", name)
    )
    figure, axes = canvas(len(NAMES), len(shown), 3.1 * len(shown) + 1.2, 7.6, sharex=True, sharey="row")
    for column, training in enumerate(shown):
        for row, (name, label) in enumerate(NAMES.items()):
            panel, part = axes[row][column], values[name]
            # Every other pair is dashed: lines that lie on each other are both seen.
            for number, (colour, architecture) in enumerate(zip(palette(len(architectures)), architectures)):
                style = ("-", "-", "--", "--")[number % 4]
                line = part[(part.training == training) & (part.architecture == architecture) & (part.value > 0)]
                line = line.groupby("layer").value.agg(["mean", "std"]).fillna(0.0).reset_index()
                deviation = line["std"].clip(upper=0.99 * line["mean"]) if name == "residual" else line["std"]
                band(panel, line.layer, line["mean"], deviation, colour, architecture, marker="o", linestyle=style)
            if column == 0:
                panel.set_ylabel(label)
        axes[0][column].set(title=training, yscale="log")
        guess = table[(table.training == training) & (table.candidates == "sentence")].chance.mean()
        for row in (2, 3):
            axes[row][column].axhline(
                guess, color=CHANCE, linewidth=1, linestyle=":", label="one of the sentence's tokens"
            )
        axes[-1][column].set_xlabel("layer")
    figure.legend(*axes[2][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    seeds = cells.groupby(["architecture", "training"]).seed.nunique().max()
    return Picture(
        figure,
        f"Four ways to lose a token on {task}, by depth of the state: lines are means over {seeds} seeds, bands one standard "
        f"deviation over seeds. The rank of T, at tolerance {tolerance:g}, mean over heads, is drawn at the layer whose state T "
        "is made of. Residuals end where rows are equal to the last digit. "
        + " ".join(fates(values, training, architectures) for training in shown)
        + " "
        + " ".join(correlations(values, training) for training in shown),
    )


def residual(table: "DataFrame") -> "DataFrame":
    """(key, layer, value), as all that follow: composite norm about the token mean, mean over samples."""
    state = (table.place == "state") & (table.quantity == "residual")
    return table[state & (table.matrix_norm == "composite") & (table.centre == "mean")][["key", "layer", "value"]]


def rank(table: "DataFrame", tolerance: float) -> "DataFrame":
    """Of T, mean over heads and samples. The block of layer l makes T of the state of layer l - 1."""
    chosen = (table.quantity == "rank") & (table.left_out == "nothing") & table.attention_head.notna()
    part = table[chosen & (table.tolerance == tolerance) & table.value.notna()]
    part = part[part.tokens == part.groupby("key").tokens.transform("max")]
    return part.groupby(["key", "layer"]).value.mean().reset_index().assign(layer=lambda found: found.layer - 1)


def identity(table: "DataFrame") -> "DataFrame":
    """Of linear maps trained and tested by cosine among the tokens of the sentence; at layer 0 of the embeddings themselves."""
    asked = (table.candidates == "sentence") & (table.distance == "cosine")
    own = (table["map"] == "linear") & (table.loss == "cosine") & (table.trained_layer == table.layer)
    start = (table["map"] == "naive") & (table.layer == 0)
    return table[asked & (own | start).fillna(False)].rename(columns={"rate": "value"})[["key", "layer", "value"]]


def own_share(table: "DataFrame") -> "DataFrame":
    """By Jacobian blocks, all tokens kept. At layer 0 the block of a token by itself is the identity and all others are zero: 1."""
    import pandas as pd

    chosen = (table.method == "jacobian") & (table.kept_tokens == "all") & (table.quantity == "own share")
    found = table[chosen & table.value.notna()][["key", "layer", "value"]]
    return pd.concat([found[["key"]].drop_duplicates().assign(layer=0, value=1.0), found])


def fates(values: "dict[str, DataFrame]", training: str, architectures: list[str]) -> str:
    """The layer at which the mean over seeds first is below half of what it is at first, for each architecture and quantity."""
    found = []
    for architecture in architectures:
        parts = []
        for name, table in values.items():
            line = table[(table.training == training) & (table.architecture == architecture)]
            line = line.groupby("layer").value.mean()
            halved = line.index[line < line.iloc[0] / 2] if len(line) else []
            parts.append(f"{name} {halved[0] if len(halved) else 'never'}")
        found.append(f"{architecture}: {', '.join(parts)}")
    return f"First layer below half of the first value, {training}: {'; '.join(found)}."


def correlations(values: "dict[str, DataFrame]", training: str) -> str:
    """Spearman correlations over layers and architectures, mean over seeds."""
    found = []
    for one, other in itertools.combinations(values, 2):
        both = values[one].merge(values[other], on=[*CELL, "layer"], suffixes=("", "_other"))
        both = both[both.training == training]
        each = [spearman(part.value, part.value_other) for _, part in both.groupby("seed")]
        found.append(
            f"{one} and {other} {sum(each) / len(each):.2f}" if each else f"{one} and {other}: no common layer"
        )
    return f"Rank correlation over layers and architectures, {training}: {', '.join(found)}."


def spearman(one: "Series", other: "Series") -> float:
    """Pearson's correlation of the ranks; equal values share a rank."""
    return float(one.astype(float).rank().corr(other.astype(float).rank()))
