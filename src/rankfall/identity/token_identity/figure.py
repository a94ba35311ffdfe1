"""Draw how often tokens are identified from hidden states: a column per network, a row per set of candidates, and maps between layers."""

from collections.abc import Sequence
from textwrap import fill
from typing import Any, Literal

from rankfall.annotations import Axes, DataFrame, Figure, Read
from rankfall.errors import RankfallError
from rankfall.identity.token_identity.shown import ASKED, is_own
from rankfall.report.captions import describe_ends, describe_lines, describe_missing
from rankfall.report.colours import BLUE, CHANCE, DIRECTION, GREEN, ORANGE, PINK, kept_map
from rankfall.report.labels import name_measurements
from rankfall.report.lines import SHARE, below, collect_labels, fit_title, on
from rankfall.report.looks import label
from rankfall.report.selection import choose, deepest, select
from rankfall.report.style import WIDTH, Picture, canvas

CANDIDATES = {
    "sentence": "tokens of the sentence",
    "distinct": "words that occur once in it",
    "vocabulary": "whole vocabulary",
}
MAPS = {"naive": BLUE, "linear": ORANGE, "mlp": GREEN}
DASHES = {"cosine": "", "l2": (3, 1.5)}
ACROSS = 6  # largest number of panels side by side
NUMBERS = ["network", "candidates", "distance", "map", "layer"]


def select_own(table: DataFrame) -> DataFrame:
    """Return maps on the layer that they were trained on, with the loss that matches the distance, and untrained maps."""
    return table[is_own(table) & (table.loss.isna() | (table.loss == table.distance)) & table.rate.notna()]


def draw_panels(table: DataFrame, networks: list[str], candidates: list[str], transfer: bool, **band: Any) -> Figure:
    """Draw a column per network, in blocks one below the other if there are many.

    `network` is the column of `table` with the network's name. `band`: arguments of seaborn for the rows of one point, by default mean
    and deviation.
    """
    rows = len(candidates) + transfer
    blocks = -(-len(networks) // ACROSS)
    across = -(-len(networks) // blocks)
    figure, axes = canvas(rows * blocks, across, WIDTH, blocks * (1.45 * rows + 0.3 * transfer) + 0.5, sharey="row")
    for place in range(blocks * across):
        block, column = divmod(place, across)
        column_axes = [line[column] for line in axes[block * rows : (block + 1) * rows]]
        if place >= len(networks):
            for panel in column_axes:
                panel.set_axis_off()
            continue
        part = table[table.network == networks[place]]
        for name, panel in zip(candidates, column_axes):
            draw_lines(panel, select_own(part[part.candidates == name]), **band)
            panel.set(ylim=(-0.03, 1.05), title="", xlabel="")
            panel.set_ylabel("" if column else f"rate among\n{fill(CANDIDATES[name], 17)}")
        column_axes[0].set_title(fit_title(label(networks[place]), WIDTH / (across + 1.6)))
        column_axes[len(candidates) - 1].set_xlabel("layer")
        if transfer:
            draw_transfer(column_axes[-1], part)
            column_axes[-1].set_xlabel("used on layer" if across > 3 else "layer that it is used on")
            column_axes[-1].set_ylabel("" if column else "layer that the\nlinear map is trained on")
    for last in (axes[(block + 1) * rows - 1] for block in range(blocks if transfer else 0)):
        bar = figure.colorbar(last[0].collections[0], ax=last, label=f"rate:\n{DIRECTION}", pad=0.02)
        bar.ax.tick_params(labelsize=6.5)
    below(figure, collect_labels(axes[0], ("map", "distance")), 4)
    return figure


def draw_lines(panel: Axes, table: DataFrame, **band: Any) -> None:
    """Draw a line for each map: solid by cosine, dashed by L2."""
    table = table.assign(**{name: table[name].astype(float) for name in ("rate", "layer")})
    on(panel, table[table["map"] != "position"], "layer", "rate", "map", MAPS,
       style="distance", style_order=list(DASHES), dashes=DASHES, bounds=SHARE, **band)  # fmt: skip
    place = select(table, {"map": "position", "distance": "cosine"})
    if len(place):
        panel.axhline(place.rate.mean(), color=PINK, linewidth=1.2, linestyle="-.", label="position alone, cosine")
    panel.axhline(table.chance.mean(), color=CHANCE, linewidth=1, linestyle=":", label="guess")


def draw_transfer(panel: Axes, table: DataFrame) -> None:
    """Draw the rates of linear maps on the states of other layers, by cosine within the sentence."""
    import seaborn as sns

    part = select(table, ASKED)
    grid = part.assign(rate=part.rate.astype(float)).pivot_table(index="trained_layer", columns="layer", values="rate")
    few = len(grid) <= 8
    sns.heatmap(
        grid, ax=panel, vmin=0, vmax=1, cmap=kept_map(), cbar=False, annot=few, fmt=".2f", annot_kws={"fontsize": 5.5}
    )
    panel.invert_yaxis()
    panel.tick_params(length=0, rotation=0)
    panel.set(xlabel="layer that it is used on", ylabel="")


def describe_finding(table: DataFrame, networks: list[str], candidates: str) -> str:
    """Write how often a linear map identifies tokens at the last layer, by cosine: in the networks where it is least and most often."""
    part = select_own(select(table, ASKED | {"candidates": candidates}))
    part = part[part.network.isin(networks)]
    last = part[part.layer == part.groupby("network").layer.transform("max")]
    cells = "key" in table  # models have no settings
    ends = [
        f"after layer {layer:g} {describe_ends(rows, 'rate', '{:.2f}'.format, 'network', settings=cells)}"
        for layer, rows in last.groupby("layer")
    ]
    guesses = part.chance.astype(float)
    least, most = (f"{guess:.2g}" if guess < 0.005 else f"{guess:.2f}" for guess in (guesses.min(), guesses.max()))
    chance = f" A guess (dotted): {least if least == most else f'{least} to {most}'}." if len(guesses) else ""
    return f"A linear map finds, among the {CANDIDATES[candidates]}: {'; '.join(ends)}.{chance}" if ends else ""


def measured_candidates(table: DataFrame, requested: Sequence[str], figure: str) -> list[str]:
    """Return the requested sets of candidates that were measured, from the smallest. Raise an error if there is none."""
    measured = [name for name in CANDIDATES if name in requested and (table.candidates == name).any()]
    if not measured:
        raise RankfallError(
            f"figure {figure}: candidates {', '.join(requested) or 'none'}: none of them was measured; the table has "
            f"{', '.join(sorted(table.candidates.unique()))}"
        )
    return measured


def token_identity(
    read: Read,
    *,
    task: str | None = None,
    training: str | None = None,
    architectures: list[str] = [],
    candidates: list[Literal["sentence", "distinct", "vocabulary"]] = ["sentence", "distinct", "vocabulary"],
    where: dict[str, Any] = {},
) -> Picture:
    """Draw the rates of the deepest networks of one task and training, by default those with the most cells.

    `architectures`: by default all. `where`: only these cells, by any column.
    """
    requested = {"task": task, "training": training, "architecture": architectures}
    table, whole, (task, training) = choose(read("token_identity"), "token_identity", where, **requested)
    table = deepest(table, "token_identity", ["architecture"])
    measured = sorted(str(name) for name in table.architecture.unique())
    names = [name for name in architectures or measured if name in measured]
    drawn = table[table.candidates.isin(candidates)]
    return draw_rates(
        table.assign(network=table.architecture).drop(columns=["low", "high"], errors="ignore"),
        names,
        measured_candidates(table, candidates, "token_identity"),
        f"{label(training)} networks on {label(task)}, on sentences that no map was trained on: "
        f"{describe_lines(drawn, ['architecture'], 'rate')}.",
        describe_missing(drawn, ["architecture"], "rate", whole),
    )


def draw_rates(
    table: DataFrame,
    networks: list[str],
    candidates: list[str],
    about: str,
    left_out: str,
    drawn: DataFrame | None = None,
    **band: Any,
) -> Picture:
    """Draw the rates of networks, whose names are in the column `network`.

    `about`: what is drawn, in words, `left_out`: what is not; `drawn`: the rows for lines and bands, if these are not seeds.
    """
    transfer = bool((table.trained_layer.notna() & (table.trained_layer != table.layer)).any())
    figure = draw_panels(table if drawn is None else drawn, networks, candidates, transfer, **band)
    caption = (
        f"Share of tokens whose embedding is the nearest to their state, as it is (naive) or mapped back, {about}"
        f"{' Below: linear maps of one layer on the states of another.' * transfer} "
        f"{describe_finding(table, networks, candidates[-1])}{left_out}"
    )
    columns = [name for name in ("rate", "low", "high", "chance") if name in table]  # with the ends of intervals
    means = select_own(table).groupby(NUMBERS, dropna=False)[columns].mean()  # over seeds
    return Picture(figure, caption, means.astype(float).reset_index())


NETWORK = ["model", "phase", "variant"]
POINT = ["network", "layer", "map", "loss", "trained_layer", "candidates", "distance"]


def model_figure(
    read: Read,
    *,
    models: list[str] = [],
    variants: list[str] = [],
    candidates: list[Literal["sentence", "distinct", "vocabulary"]] = ["sentence", "distinct", "vocabulary"],
) -> Picture:
    """Draw the rates by layer.

    `models`, `variants`: which ones, by default all.
    """
    table = read("model_token_identity")
    for column, names in (("model", models), ("variant", variants)):
        table = table[table[column].isin(names)] if names else table
    if table.empty:
        raise RankfallError("figure model_token_identity: the table has no row with these models and variants")
    names = [f"{name}, {label(variant)}" for name, variant in zip(name_measurements(table), table.variant)]
    table = table.assign(network=names)
    random = table[table.phase == "init"]
    seeded = f" Of initialised models: {describe_lines(random, ['network'], band='')}." if len(random) else ""
    return draw_rates(
        table,
        list(table.sort_values(NETWORK, kind="stable").network.unique()),
        measured_candidates(table, candidates, "model_token_identity"),
        f"on at least {int(table.sentences.min())} sentences that no map was trained on; bands are 95% intervals over sentences.{seeded}",
        describe_missing(table, ["network"], "rate"),
        drawn=intervals(table),
        estimator="median",
        errorbar=("pi", 100),
    )


def intervals(table: DataFrame) -> DataFrame:
    """Return three rows per point, means over seeds: the rate and both ends of its interval. Their median and range are drawn."""
    from pandas import concat

    means = table.groupby(POINT, dropna=False)[["rate", "low", "high", "chance"]].mean().reset_index()
    return concat([means, *(means.assign(rate=means[end]) for end in ("low", "high"))])
