"""Attribution by layer, one row of panels per network.

The panels show own share, share by distance, how often another token ranks first, and rank correlations of methods.
"""

from typing import Any

from rankfall.annotations import Axes, DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.identity.attribution.shown import ALL_TOKENS, JACOBIAN, OWN
from rankfall.report.captions import describe_lines, describe_missing
from rankfall.report.colours import BLUE, CHANCE, KEEPS, LOSES, RED
from rankfall.report.lines import below, collect_labels
from rankfall.report.looks import label
from rankfall.report.ranking import say_mean, say_span
from rankfall.report.selection import choose, deepest, select
from rankfall.report.settings import differences
from rankfall.report.style import WIDTH, Picture, canvas

TABLES = ["attribution", "datasets"]
METHODS = (
    "jacobian", "jacobian without outliers", "jacobian x input", "norms", "rollout", "attention", "ablation"
)  # fmt: skip
SHARES = ("own share", "distance 1", "distance 2", "distance 3", "distance 4-5", "distance 6-10", "distance 11+")
DRAWN = [*SHARES, "not first", "spearman of others"]
QUANTILES = {"med": "median", "q1": "lower", "q3": "upper", "whislo": "low", "whishi": "high"}
TITLES = ("own share", "share\nby distance", "another token\nis first", "rank correlation\nwith the Jacobian")
PUBLISHED = {1: 0.306, 6: 0.149, 12: 0.107}  # medians of own shares in BERT-base, second-hand (Brunner et al. 2020)


def attribution(
    read: Read,
    *,
    task: str | None = None,
    architectures: list[str] = [],
    trainings: list[str] = [],
    where: dict[str, Any] = {},
) -> Picture:
    """Draw a row of panels for each architecture and training, for the deepest networks.

    The default task is the one with the most cells.
    """
    requested = {"task": task, "architecture": architectures, "training": trainings}
    table, whole, (task,) = choose(read("attribution"), "attribution", where, **requested)
    table = deepest(table, "attribution", ["architecture", "training"])
    drawn, by = table[table.quantity.isin(DRAWN)], ["architecture", "training"]
    sizes = read("datasets")
    lengths = sizes[(sizes.task == task) & (sizes.split == "test")]["length"].dropna().unique()
    settings = differences(table, but=["training"])
    networks = {
        ", ".join(filter(None, (label(name), label(training), settings[str(name)]))): part
        for (name, training), part in table.groupby(["architecture", "training"])
    }
    equal = say_span((1 / length for length in lengths), "{:.1%}".format)
    several = f" Equal shares of all tokens are {equal}, by the options of the task." if len(lengths) > 1 else ""
    length = int(lengths[0]) if len(lengths) == 1 else None
    about = f" Numbers are {describe_lines(drawn, by, 'value', band='')}.{describe_missing(drawn, by, 'value', whole)}"
    return draw_networks(networks, several + about, length, on=f", on {label(task)}")


def draw_networks(
    networks: dict[str, DataFrame], about: str, length: int | None = None, published: bool = False, on: str = ""
) -> Picture:
    """Draw one row of panels for each network; numbers are means over its seeds.

    `about`: end of the caption; `length`: of the texts; `published`: with the medians of Brunner et al.; `on`: the task in words.
    """
    from pandas import concat

    if not networks:
        raise RankfallError("figure attribution: no network to draw")
    figure, axes = canvas(len(networks), 4, WIDTH, 1.5 * len(networks) + 1.1)
    for row, (name, table) in zip(axes, networks.items()):
        layers = sorted(table.layer.unique())
        draw_boxes(row[0], table, published)
        draw_distances(row[1], table, length)
        others = select(table, {"quantity": "spearman of others"})
        first, second = others.method == JACOBIAN["method"], others.other == JACOBIAN["method"]
        others = others.assign(method=others.other.where(first, others.method))[first | second]
        not_first = select(table, ALL_TOKENS | {"quantity": "not first"})
        methods = [name for name in METHODS if name in {*others.method, *not_first.method}]
        draw_methods(row[2], not_first, LOSES, methods)
        draw_methods(row[3], others, KEEPS, methods)
        row[3].set_yticks([])  # the same methods as to its left
        if length:
            row[0].axhline(1 / length, color=CHANCE, linewidth=1, linestyle=":", label="equal shares")
        several = len(layers) > 8
        for axis in row[:2]:
            axis.set_xticks(layers, [str(n) if not several or n == 1 or n % 3 == 0 else "" for n in layers])
            axis.set(xlabel="", ylabel="")
        row[0].set_ylabel(name.replace(", ", ",\n"))
    for axis, title in zip(axes[0], TITLES):
        axis.set_title(title)
    for axis in axes[-1]:
        axis.set_xlabel("layer")
    below(figure, collect_labels([axes[0][1], axes[0][0]]), 4)
    equal = f" Dotted: equal shares of {length:g} tokens, {1 / length:.1%}." if length else ""
    caption = (
        f"Where each token's state comes from, by layer{on}. From left to right: the share of a token's own input, by norms of Jacobian "
        "blocks (boxes: quartiles over tokens, whiskers: 5 and 95%); the shares of other tokens by distance; how often another token has "
        "the largest share, by method; the rank correlation of each method's shares of other tokens with the Jacobian's."
        f"{' The published medians are second-hand.' * published}{equal} "
    )
    parts = [part[part.quantity.isin(DRAWN)].assign(network=name) for name, part in networks.items()]
    by = ["network", "quantity", "kept_tokens", "method", "other", "layer"]
    means = concat(parts).groupby(by, dropna=False)[["value", *QUANTILES.values()]].mean().reset_index()
    return Picture(figure, caption + describe_finding(networks) + about, means)


def draw_boxes(axis: Axes, table: DataFrame, published: bool) -> None:
    """Draw boxes from the quantiles in the table, which does not hold single tokens."""
    means = select(table, JACOBIAN | OWN).groupby("layer")[list(QUANTILES.values())].mean()
    boxes = [{key: line[column] for key, column in QUANTILES.items()} | {"fliers": []} for _, line in means.iterrows()]
    axis.bxp(boxes, positions=list(means.index), widths=0.6, showfliers=False, medianprops={"color": RED})
    if published:
        shown = {layer: value for layer, value in PUBLISHED.items() if layer <= means.index.max()}
        axis.plot(list(shown), list(shown.values()), color=BLUE, marker="x", linestyle="none", markersize=6,
                  label="published medians")  # fmt: skip
    axis.set_ylim(0, 1.02)


def draw_distances(axis: Axes, table: DataFrame, length: int | None) -> None:
    """Draw the shares by distance as stacked bars. `length`: of the texts, which limits the last distance."""
    from seaborn import color_palette

    part = select(table, JACOBIAN | {"quantity": list(SHARES)})
    means = part.groupby(["layer", "quantity"]).value.mean().unstack()
    stacked = means[[name for name in SHARES if name in set(part.quantity)]]
    below_it = stacked.cumsum(axis=1) - stacked
    for name, colour in zip(SHARES, color_palette("cividis", len(SHARES))):
        if name in stacked and (stacked[name] > 0).any():
            start, _, end = name.partition("-")
            shown = f"{start}-{length - 1}" if end and length and length <= int(end) else name
            axis.bar(stacked.index, stacked[name], bottom=below_it[name], width=0.85, color=colour, label=shown)
    axis.set_ylim(0, 1.02)
    axis.grid(visible=False)


def draw_methods(axis: Axes, part: DataFrame, colour: str, methods: list[str]) -> None:
    """Draw a row per method and a column per layer: lines of methods would lie on each other. Numbers are means over seeds."""
    import seaborn as sns

    part = part.dropna(subset="value").astype({"value": float, "layer": int})
    grid = part.pivot_table(index="method", columns="layer", values="value").reindex(methods)
    if part.empty:
        axis.set_axis_off()
        return
    few = len(grid.columns) <= 8
    sns.heatmap(grid, ax=axis, vmin=0, vmax=1, cmap=sns.light_palette(colour, as_cmap=True), cbar=False, linewidths=0.5,
                annot=grid.round(1) + 0.0 if few else None, fmt=".1f", annot_kws={"fontsize": 6})  # fmt: skip
    axis.set(xlabel="", ylabel="")
    axis.set_yticklabels(axis.get_yticklabels(), rotation=0, fontsize=6.5)
    axis.grid(visible=False)
    axis.tick_params(length=0)


def describe_finding(networks: dict[str, DataFrame]) -> str:
    """Write the median own share after the last layer of each network, with its deviation over seeds."""
    texts = []
    for name, table in networks.items():
        part = select(table, JACOBIAN | OWN)
        last = part[part.layer == part.layer.max()]
        medians = last["median"].astype(float)
        medians = medians.groupby(last.seed).mean() if "seed" in last else medians
        texts.append(f"{say_mean(100 * medians.mean(), 100 * medians.std(), 1)}% ({name})")
    return f"The median own share after the last layer is {', '.join(texts)}."
