"""Declare the table `attention_identity` and what is shown of it: information in attention weights, by layer, head and length."""

from rankfall.annotations import DataFrame
from rankfall.report.cell_numbers import at_last, plain
from rankfall.report.headlines import Headline
from rankfall.report.lines import POSITIVE
from rankfall.report.page.chart import NETWORK, Chart
from rankfall.report.schema import Table, declare_columns, declare_table
from rankfall.report.selection import select

QUANTITIES = (
    "rank: of T = (E W_V + 1 b^T) H, singular values above tolerance times the largest; null: n - rank, directions in "
    "which a row of n weights can change without a change of the output; null_simplex: the same for rows that keep "
    "their sum; step_distance: of a second distribution with the same output, by steps along null directions, from "
    "the first (half the sum of absolute differences, mean over rows), and step_error: largest change of output (over "
    "the largest entry of A T) or of a row's sum; distance: of the farthest distribution that linear programs find "
    "for a sampled row, distance_error: its change of output; interval_low, interval_high: smallest and largest value "
    "that a sampled entry, now interval_value, can have with the same output, width: between the two; width_largest: "
    "the same for the largest entry of its row; width_error: change of output at the ends; score_rank, "
    "witness_score_rank: rank of the scores that A, and a second distribution, come from (at most the width of a "
    "head's queries and keys if scores are their products); correlation: of effective attention A T T^+ with A over "
    "all entries (Pearson); effective_error: largest entry of A_eff T - A T over that of A T; effective_sum: of a row "
    "of A_eff; effective_below_zero: share of its entries; share, effective_share: of absolute weights on tokens of a "
    "kind; first_mass: weight of the first token in other tokens' rows; entropy: of a row, in nats; outlier_channels: "
    "channels of what the attention reads above 6 times the median root mean square"
)
COLUMNS = declare_columns(
    """
    layer int: 1 is the first block
    attention_head int?: null: of the whole layer
    tokens int [tokens]: n: tokens of a sequence, sentinels included
    left_out text: what the number is computed without: nothing, or first token (weights of the others scaled to the same sum)
    quantity text: rank: of T = (E W_V + 1 b^T) H, singular values above tolerance times the largest; null: n - rank, directions in
        which a row of n weights can change without a change of the output; null_simplex: the same for rows that keep their sum;
        step_distance: of a second distribution with the same output, by steps along null directions, from the first (half the sum of
        absolute differences, mean over rows), and step_error: largest change of output (over the largest entry of A T) or of a row's sum;
        distance: of the farthest distribution that linear programs find for a sampled row, distance_error: its change of output;
        interval_low, interval_high: smallest and largest value that a sampled entry, now interval_value, can have with the same output,
        width: between the two; width_largest: the same for the largest entry of its row; width_error: change of output at the ends;
        score_rank, witness_score_rank: rank of the scores that A, and a second distribution, come from (at most the width of a head's
        queries and keys if scores are their products); correlation: of effective attention A T T^+ with A over all entries (Pearson);
        effective_error: largest entry of A_eff T - A T over that of A T; effective_sum: of a row of A_eff; effective_below_zero: share of
        its entries; share, effective_share: of absolute weights on tokens of a kind; first_mass: weight of the first token in other tokens'
        rows; entropy: of a row, in nats; outlier_channels: channels of what the attention reads above 6 times the median root mean square
    kind text?: of token, for shares: first, separator (special tokens), punctuation, other; null for other quantities
    tolerance float?: of the rank; null: 1e-10, and 1e-13 for distributions
    value float?: mean over samples (for programs over sampled rows); under a mask over a few rows of each sample, too
    deviation float?: standard deviation over the same; null: fewer than two
    least float?: smallest
    most float?: largest
    count int: how many samples, or sampled rows, gave a number
    value_reason text?: why there is no value
    """
)
KEY = ("layer", "attention_head", "tokens", "left_out", "quantity", "kind", "tolerance")


def columns() -> Table:
    """Declare the table: one row per head and quantity."""
    return declare_table(
        "attention_identity",
        "a cell x layer x head x length x what is left out x quantity x kind x tolerance",
        COLUMNS,
        key=" ".join(KEY),
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
