"""Declare the table `influence` and what is shown of it: influence of each position on the last token of untrained causal stacks, and
closed forms for it.

The figure: influence of position on the last token of causal stacks: at initialisation, by formula and network, and after training.
"""

from rankfall.annotations import Axes, DataFrame, Read, Series
from rankfall.errors import RankfallError
from rankfall.report.captions import describe_lines, describe_missing
from rankfall.report.colours import BLUE, CHANCE, RED, WHOLE
from rankfall.report.lines import SHARE, below, collect_labels, on, plain_ticks, steps, summary
from rankfall.report.looks import label
from rankfall.report.page.chart import Chart, Level
from rankfall.report.published_numbers import read_published
from rankfall.report.ranking import average, say_mean
from rankfall.report.schema import Table, declare_table
from rankfall.report.selection import among, init_first, one_a_seed, one_of, select, select_asked, select_finished
from rankfall.report.style import WIDTH, Picture, canvas


def columns() -> Table:
    return declare_table(
        "influence",
        "each source, network, position, weight, depth, seed and place; without a place: agreement with uniform averaging",
        """
        source text: jacobian: norms of blocks d e_n / d x_i of a network; averaging: last row of ((1 - a) 1 + a C)^depth, C_ji = 1/j;
            smoothed density: the same from its closed form; density: its limit for many places; in squares: what independent random value
            maps add up to
        network text: attention: (1 - a) X + a SA(X) alone; pre-norm: a pre-norm transformer; none: a formula
        position text?: the network's position encoding; null: a formula
        alpha float?: weight a of the attention beside the skip; null: a pre-norm transformer
        depth int: layers
        length int [tokens]: places
        seed int?: draw of weights and inputs; null: a formula
        quantity text: share: of one place; agreement: of all places with uniform averaging
        place int?: 1 is the first token; null: the row is about all places
        share float?: of the influence on the last token; sums to one over places
        spearman float?: rank correlation over places with uniform averaging at the same (or fitted) a
        distance float?: half the sum of differences from uniform averaging
        from_squares float?: the same from `in squares` at the same a; null: a formula or pre-norm
        fitted float?: the a at which uniform averaging is nearest to a pre-norm transformer
        """,
        key="source network position alpha depth length seed place",
        cells=False,
    )


SHARES = {"quantity": "share"}


def curve(table: DataFrame) -> Series:
    """Return the name of each curve: a formula, or a network with a position encoding."""
    network = table.network.where(table.network == "none", " of " + table.network + ", position " + table.position)
    return table.source + network.where(table.network != "none", "")


def equal_places(table: DataFrame) -> Series:
    return 1 / table["places" if "places" in table else "length"]


CHARTS = (
    Chart(
        "influence",
        "Influence of each place on the last token, untrained",
        "Of networks whose tokens see only those before them, by derivatives (jacobian), beside formulas for it (the others): the less "
        "influence a place has, the less the last token knows of it.",
        "place",
        "share",
        "place of a token",
        "share of the influence",
        line="curve",
        scale="log",
        choose=("depth", "length", "alpha"),
        where=SHARES,
        derive={"curve": curve, "equal_places": equal_places},
        within=SHARE,
        beside=(Level("equal shares", "equal_places"),),
        place=50,
        study="position",
    ),
)


DATA = ["identity/influence/published.csv"]
PUBLISHED = read_published(__file__)


TABLES = ["influence", "cell_influence"]
LINES = {"averaging": ("uniform averaging", WHOLE, "-"), "in squares": ("mean square for random maps", "#999999", "--")}
NETWORKS = {
    "none": ("no position", BLUE, "o", 5.0),
    "rope": ("RoPE", RED, ".", 3.0),
}  # rings around points, since the two coincide


def figure(
    read: Read,
    *,
    depth: int = 24,
    alpha: float = 0.3,
    architecture: str | None = None,
    task: str | None = None,
) -> Picture:
    """Draw shares of influence by position.

    `depth`, `alpha`: of the untrained stack; `architecture`, `task`: of the causal cells, by default the first and the most frequent.
    """
    from pandas import concat

    table = read("influence")
    whole, places = table[table.quantity == "agreement"], select(table, SHARES | {"depth": depth})
    if places.empty or not (places.alpha == alpha).any():
        setting = f"depth {depth} with alpha {alpha}"
        raise RankfallError(f"figure influence: {setting} was not measured; choose others by its options")
    cells = select_trained(read("cell_influence"), architecture, task)
    chosen, task_name = str(cells.architecture.iloc[0]), str(cells.task.iloc[0])
    figure, axes = canvas(1, 3, WIDTH, 2.9)
    left, middle, right = axes[0]
    places = places.assign(x=places.place / places.length)
    draw_untrained(left, places[places.alpha == alpha], ("averaging", "in squares"))
    draw_untrained(middle, places[places.network == "pre-norm"], ("averaging",))
    right.set_yscale("log")
    requested = select_asked(read("cell_influence"), {}, architecture=chosen, task=task_name)
    missing = describe_missing(cells, ["training"], "share", requested)
    cells = cells[cells.share.notna()].astype({"share": float})
    on(right, cells, "x", "share", "training", steps(init_first(cells.training)), bounds=SHARE)
    titles = (
        f"(1 - a) X + a SA(X), a = {alpha:g},\n{depth} layers",
        f"pre-norm transformer,\n{depth} layers",
        f"{label(chosen)} on {label(task_name)},\nlast layer",
    )
    for axis, title in zip(axes[0], titles):
        axis.set(xlabel="place / number of places", ylabel="", yscale="log", title=title)
    for axis, count in zip(axes[0], (places.length.iloc[0], places.length.iloc[0], cells.places.iloc[0])):
        axis.axhline(1 / count, color=CHANCE, linewidth=1, linestyle=":", label="equal shares")
        plain_ticks(axis)
    left.set_ylabel("share of the influence\non the last token")
    below(figure, collect_labels(axes[0], ("training",)), 3)
    networks = whole[(whole.source == "jacobian") & (whole.depth == depth) & (whole.alpha == alpha)]
    low, high = (f"{end:.3f}" for end in (networks.spearman.min(), networks.spearman.max()))
    span = low if low == high else f"{low} to {high}"
    early = cells[cells.x <= 0.5].groupby(["training", "seed"]).share.sum().reset_index()
    early = average(early, "share", "training")
    halves = ", ".join(
        f"{label(name)} {say_mean(early['mean'][name], early['std'][name], 2)}" for name in init_first(cells.training)
    )
    seeds = describe_lines(cells, ["training"], band="one standard deviation of the logarithm", mean="geometric means")
    caption = (
        "How much each place influences the last token, by norms of Jacobian blocks. Left and middle: untrained networks (points) and "
        f"closed forms (lines). Right: {seeds}. Dotted: equal shares. "
        f"Left, the rank correlation with uniform averaging is {span}. "
        f"Right, the first half of the places has this share of the influence: {halves}.{missing}"
    )
    by, scores = ["network", "alpha", "position", "source"], ["spearman", "distance", "from_squares", "fitted"]
    drawn = places.groupby([*by, "place"], dropna=False).share.mean().rename("mean").reset_index()
    scored = whole[whole.depth == depth].groupby(by, dropna=False)[scores].mean().reset_index()
    scored = scored.melt(by, scores, "quantity", "mean").dropna(subset="mean")
    trained = summary(cells, ["training", "place"], "share", log=True)
    return Picture(figure, caption, concat([drawn.assign(quantity="share"), scored, trained]))


def draw_untrained(panel: Axes, places: DataFrame, formulas: tuple[str, ...]) -> None:
    """Draw networks as points and formulas as lines."""
    for source in formulas:
        label, colour, style = LINES[source]
        line = places[places.source == source].groupby("x").share.mean()
        panel.plot(line.index, line, color=colour, linestyle=style, label=label)
    for position, (label, colour, marker, size) in NETWORKS.items():
        line = places[(places.source == "jacobian") & (places.position == position)].groupby("x").share.mean()
        fill = "none" if marker == "o" else colour
        panel.plot(line.index, line, marker, color=colour, markersize=size, markerfacecolor=fill, label=label)


def select_trained(table: DataFrame, architecture: str | None, task: str | None) -> DataFrame:
    """Return the last layer of the deepest networks of one architecture and task: a row per network and position."""
    done = select_finished(table, "influence", {})
    chosen = architecture or next(iter(sorted(done.architecture.unique())), None)
    cells, _ = one_of(among(done, "influence", "architecture", [chosen] if chosen else []), "influence", "task", task)
    cells = cells[(cells.depth == cells.groupby("training").depth.transform("max")) & (cells.layer == cells.depth)]
    one_a_seed(cells, "influence", ["training"])
    return cells.assign(x=cells.place / cells.places)
