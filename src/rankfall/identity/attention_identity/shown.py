"""Declare the tables `attention_identity` and `model_attention_identity` and what is shown of them: information in attention weights of
networks and of real models, by layer, head and length."""

from dataclasses import replace

from rankfall.annotations import Axes, DataFrame, Read
from rankfall.report.headlines import Headline, at_last, plain
from rankfall.report.labels import name_measurements, select_models
from rankfall.report.lines import POSITIVE, below, collect_labels, on, steps
from rankfall.report.page.chart import MODEL, NETWORK, Chart
from rankfall.report.published_numbers import read_published
from rankfall.report.schema import MODEL_COLUMNS, Table, declare_table
from rankfall.report.selection import select
from rankfall.report.style import WIDTH, Picture, canvas, space_ticks

KEY = "layer attention_head tokens left_out quantity kind tolerance"


def columns() -> Table:
    return declare_table(
        "attention_identity",
        "each cell, layer, head, length, choice of what is left out, quantity, kind and tolerance",
        """
        layer int: 1 is the first block
        attention_head int?: null: of the whole layer
        tokens int [tokens]: n: tokens of a sequence, sentinels included
        left_out text: what the number is computed without: nothing, or first token (weights of the others scaled to the same sum)
        quantity text: rank: of T = (E W_V + 1 b^T) H, singular values above tolerance times the largest; null: n - rank, directions in
            which a row of n weights can change without a change of the output; null_simplex: the same for rows that keep their sum;
            step_distance: of a second distribution with the same output, by steps along null directions, from the first (half the sum of
            absolute differences, mean over rows), and step_error: largest change of output (over the largest entry of A T) or of a row's
            sum; distance: of the farthest distribution that linear programs find for a sampled row, distance_error: its change of output;
            interval_low, interval_high: smallest and largest value that a sampled entry, now interval_value, can have with the same output,
            width: between the two; width_largest: the same for the largest entry of its row; width_error: change of output at the ends;
            score_rank, witness_score_rank: rank of the scores that A, and a second distribution, come from (at most the width of a head's
            queries and keys if scores are their products); correlation: of effective attention A T T^+ with A over all entries (Pearson);
            effective_error: largest entry of A_eff T - A T over that of A T; effective_sum: of a row of A_eff; effective_below_zero: share
            of its entries; share, effective_share: of absolute weights on tokens of a kind; first_mass: weight of the first token in other
            tokens' rows; entropy: of a row, in nats; outlier_channels: channels of what the attention reads above 6 times the median root
            mean square
        kind text?: of token, for shares: first, separator (special tokens), punctuation, other; null for other quantities
        tolerance float?: of the rank; null: 1e-10, and 1e-13 for distributions
        value float?: mean over samples (for programs over sampled rows); under a mask over a few rows of each sample, too
        deviation float?: standard deviation over the same; null: fewer than two
        least float?: smallest
        most float?: largest
        count int: how many samples, or sampled rows, gave a number
        value_reason text?: why there is no value
        """,
        key=KEY,
    )


WHOLE = {"left_out": "nothing"}  # no token or channel is excluded
FREE = {**WHOLE, "quantity": "null"}
RANK = {**WHOLE, "quantity": "rank"}  # of the value matrix
TOLERANCE = 1e-6  # of the rank of the value matrix: above float32 rounding, below the size of meaningful weights
EXACT = 1e-10  # tolerance for double precision


def exact(table: DataFrame) -> DataFrame:
    """Return the rows without a tolerance, or with that of double precision."""
    return table[table.tolerance.isna() | (table.tolerance == EXACT)]


def of_heads(table: DataFrame) -> DataFrame:
    """Return the rows of single heads, at the longest sequence of each network."""
    heads = table[table.attention_head.notna()]
    return heads[heads.tokens == heads.groupby("key").tokens.transform("max")]


def free(table: DataFrame) -> DataFrame:
    return at_last(of_heads(select(table, {**FREE, "tolerance": TOLERANCE})))


def null_dimension(rows: DataFrame) -> DataFrame:
    heads = rows.groupby("key").value
    return plain(heads.mean().where(heads.count() == heads.size()).reset_index(), "value")


HEADLINES = (
    Headline(
        "null_dimension",
        "free directions of attention weights",
        "dimensions in which a row of attention weights of the last layer, its sum too, can change without a change of the output, at "
        "tolerance 1e-6; mean over heads, at the longest sequence",
        ("layer", "attention_head", "tokens", "left_out", "quantity", "tolerance", "value"),
        free,
        null_dimension,
        unit="dimensions",
        first="trained",
        good="low",
        place=10,
    ),
)


CHARTS = (
    Chart(
        "free",
        "Free directions of attention weights",
        "In how many directions a row of attention weights can change, its sum too, without any change of the layer's output, mean over "
        "heads. More than 0: the weights do not say by themselves where the output comes from.",
        "layer",
        "value",
        "layer",
        "free directions",
        choose=(*NETWORK, "tolerance"),
        start={"training": "converged", "tolerance": TOLERANCE},
        where=FREE,
        most=("tokens",),
        within=POSITIVE,
        place=10,
    ),
)


def model_columns() -> Table:
    """Declare the table `model_attention_identity`, which has the columns of `attention_identity`."""
    return declare_table(
        "model_attention_identity",
        "each model, phase, seed, layer, head, length, choice of what is left out, quantity, kind and tolerance",
        MODEL_COLUMNS,
        columns().own,
        key=f"model revision phase text length dtype seed {KEY}",
        cells=False,
    )


MODEL_CHARTS = (
    replace(
        CHARTS[0],
        name="model_free",
        title="Free directions of attention weights of real models",
        text="The same for real models, by the length of the text: weights over more tokens than a head has dimensions always have some.",
        line="model",
        choose=(*MODEL[1:], "tolerance"),
        start={"tolerance": TOLERANCE},
        most=(),
        place=20,
    ),
)


DATA = ["identity/attention_identity/model_published.csv"]
MODEL_PUBLISHED = read_published(__file__, "model_published.csv")


LOOSE = 1e-3
MOST = ("pi", 80)  # from the tenth to the ninetieth percentile
PANELS = {
    "null_simplex": "free directions\nof a row",
    "distance": "distance to the\nfarthest other row",
    "width_largest": "range of the\nlargest weight",
    "correlation": "correlation of raw\nand effective weights",
}


def model_figure(read: Read, *, models: list[str] | None = None) -> Picture:
    """Draw four quantities against the length of the text, one line per model and phase.

    The last two panels show distance and rank by layer at the greatest length.
    """
    table = select_models(read("model_attention_identity"), "model_attention_identity", models)
    table = select(table, WHOLE)
    table = table[table.value.notna()]
    names = name_measurements(table, axis="length")
    table = table.assign(line=names, value=table.value.astype(float))
    exactly = exact(table)
    longest = table[table.tokens == table.groupby("line").tokens.transform("max")]
    palette = steps(sorted(set(names)))
    figure, axes = canvas(2, 3, WIDTH, 4.2)
    panels = [panel for row in axes for panel in row]
    for panel, (quantity, title) in zip(panels, PANELS.items()):
        on(panel, exactly[exactly.quantity == quantity], "tokens", "value", "line", palette, errorbar=MOST)
        panel.set(xlabel="tokens", ylabel=title)
    on(panels[4], longest[longest.quantity == "distance"], "layer", "value", "line", palette, errorbar=MOST)
    rank = longest[(longest.quantity == "rank") & longest.tolerance.isin([EXACT, LOOSE])]
    on(panels[5], rank.assign(tolerance=rank.tolerance.map("{:g}".format)), "layer", "value", "line", palette, errorbar=None,
       style="tolerance", style_order=[f"{EXACT:g}", f"{LOOSE:g}"], dashes=["", (2, 1.5)])  # fmt: skip
    for panel, title in zip(panels[4:], ("distance to the\nfarthest other row", "rank of T")):
        panel.set(xlabel="layer", ylabel=title, xticks=space_ticks(1, int(table.layer.max()) if len(table) else 1))
    draw_limits(panels[0], panels[5], table, palette)
    below(figure, collect_labels([panels[0]], ("line",)), 4)
    points = exactly.groupby(["line", "tokens", "layer", "quantity"]).value
    caption = (
        "How far the output of a head determines its attention weights: in how many directions a row of weights can change without "
        "effect, how far away the farthest row with the same output is, in which range its largest weight can lie, and how weights "
        "correlate with their part that has an effect. By length of the text, means over layers and heads, bands from the tenth to the "
        "ninetieth percentile; last two, by layer at the greatest length. A head returns its weights times T; the rank of T is at "
        "relative tolerances 1e-10 (solid) and 1e-3 (dashed). Dotted: what the head width gives. "
        f"{describe_finding(exactly)}"
    )
    numbers = points.agg(
        mean="mean", low=lambda x: x.quantile(0.1), high=lambda x: x.quantile(0.9), count="count"
    ).reset_index()
    return Picture(figure, caption, numbers)


def draw_limits(free: Axes, rank: Axes, table: DataFrame, palette: dict[str, str]) -> None:
    """Draw dotted lines at tokens - head width - 1 free directions, and at a rank of the head width."""
    for name, part in table.groupby("line"):
        width = int(part.width.iloc[0] // part.heads.iloc[0])
        lengths = sorted(part.tokens.unique())
        free.plot(lengths, [max(n - width - 1, 0) for n in lengths], color=palette[name], linestyle=":", linewidth=1)
        rank.axhline(width, color=palette[name], linestyle=":", linewidth=1)


def describe_finding(table: DataFrame) -> str:
    """Write how many directions are free at the greatest length, beside the head width."""
    texts = []
    for name, part in table.groupby("line"):
        longest, width = int(part.tokens.max()), int(part.width.iloc[0] // part.heads.iloc[0])
        free = part[(part.tokens == longest) & (part.quantity == "null_simplex")].value.mean()
        texts.append(f"{free:.3g} ({name}, head width {width}, {longest} tokens)")
    finding = ", ".join(texts) or "none was measured"
    return f"Directions in which a row can change without effect, its sum kept: {finding}."
