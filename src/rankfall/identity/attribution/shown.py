"""Declare the tables `attribution` and `model_attribution` and what is shown of them: share of a token's state that comes from each token
of the input, in networks and in real models."""

from dataclasses import replace

from rankfall.annotations import DataFrame, Read, Series
from rankfall.report.captions import describe_lines
from rankfall.report.headlines import Headline, at_last, plain
from rankfall.report.labels import name_measurements, select_models
from rankfall.report.lines import SHARE
from rankfall.report.page.chart import MODEL, NETWORK, Chart, Level
from rankfall.report.page.question import ask_range, percent
from rankfall.report.published_numbers import read_published
from rankfall.report.schema import MODEL_COLUMNS, Table, declare_table
from rankfall.report.selection import select
from rankfall.report.style import Picture

KEY = "layer method kept_tokens quantity other"


def columns() -> Table:
    return declare_table(
        "attribution",
        "each cell, layer, method, set of kept tokens and quantity",
        """
        layer int: 1 is the first block
        method text: jacobian: Frobenius norm of the whole block d e_j / d x_i, x_i what enters the first layer; jacobian without
            outliers: without the outlier features of e_j; jacobian x input: its columns times x_i; summed gradient: of the sum of e_j's
            features; attention: mean over heads of this layer's weights; rollout: layers' (attention + 1) / 2 multiplied; norms: of
            weighted values with skip and norm, multiplied over layers; ablation: how far e_j moves when x_i becomes the mean of the tokens.
            Of a mixing ratio: what is counted (attention; norms; the same and skip; and norm)
        kept_tokens text: all, or without first: the first token is left out as i and as j
        quantity text: own share: c_jj, c_ji being contributions divided by their sum over i; not first: whether another token has the
            largest share; distance ...: share of tokens that far away; mixing ratio: what others add in this layer alone, |others| /
            (|others| + |own|); spearman: rank correlation over i with the method `other`, of others: without i = j
        other text?: the method that ranks are compared with; null: not a correlation
        value float?: mean over tokens j and samples; null: there is none, see `value_reason`
        median float?: over tokens and samples; null for `not first`
        low float?: 5% quantile
        lower float?: quartile
        upper float?: quartile
        high float?: 95% quantile
        deviation float?: over samples, of their means; null: one sample
        error float?: standard error of `value` from drawing directions (jackknife); null: nothing is drawn, the value is exact
        median_error float?: the same of `median`
        median_low float?: lower end of the interval of 95% of `median`, over samples drawn anew with all their tokens; null: fewer than 8
            samples
        median_high float?: its upper end
        directions int?: random directions of e_j that estimate a block's norm; null: all D, exact
        samples int: samples that it is over
        tokens int: tokens j that it is over, of all samples
        value_reason text: why there is no value; empty otherwise
        """,
        key=KEY,
    )


ALL_TOKENS = {"kept_tokens": "all"}
JACOBIAN = {"method": "jacobian", **ALL_TOKENS}  # the default method
OWN = {"quantity": "own share"}


def equal_shares(table: DataFrame) -> Series:
    """Return the share of each token if all tokens of a sample had the same share."""
    if "length" not in table:
        return table.samples / table.tokens
    # For models, of whose tokens only some are sampled.
    return 1 / (table["length"] - (table.kept_tokens == "without first"))


HEADLINES = (
    Headline(
        "own_share",
        "own share at the last layer",
        "how much of a token's last state comes from its own input, by the norms of its derivatives, mean over tokens",
        ("layer", "method", "kept_tokens", "quantity", "value"),
        lambda table: at_last(select(table, JACOBIAN | OWN)),
        lambda rows: plain(rows, "value", chance=equal_shares(rows)),
        first="trained",
        beside={"chance": "1/n, where all tokens have equal shares"},
        place=30,
    ),
)


CHARTS = (
    Chart(
        "own_share",
        "Own share of a token's state",
        "How much of a token's state comes from its own input, by several ways to attribute it.",
        "layer",
        "value",
        "layer",
        "own share",
        choose=(*NETWORK, "method", "kept_tokens"),
        start={"training": "converged", **JACOBIAN},
        where=OWN,
        derive={"equal_shares": equal_shares},
        within=SHARE,
        beside=(Level("equal shares", "equal_shares"),),
        place=50,
    ),
)


SENTENCES = (
    ask_range(
        "How much of a vector is its own token?",
        "own_share",
        "at the last layer the own share is largest in",
        percent,
        place=110,
    ),
)


def model_columns() -> Table:
    """Declare the table `model_attribution`, which has the columns of `attribution` too."""
    return declare_table(
        "model_attribution",
        "each model, phase, seed, layer, method, set of kept tokens and quantity",
        MODEL_COLUMNS,
        columns().own,
        """
        outliers int: features of this layer's states whose mean size is above six times the median feature's, four at most
        """,
        key=f"model revision phase definition text length dtype seed {KEY}",
        cells=False,
    )


MODEL_CHARTS = (
    replace(
        CHARTS[0],
        name="model_own_share",
        title="Own share of a token's state in real models",
        text="The same for real models, one line for each way to attribute: derivatives (jacobian), attention weights, norms of what is "
        "added, or taking the token out (ablation).",
        line="method",
        choose=(*MODEL, "kept_tokens"),
        start={**ALL_TOKENS, "definition": "clean"},
        place=60,
    ),
)


DATA = ["identity/attribution/model_published.csv"]
MODEL_PUBLISHED = read_published(__file__, "model_published.csv")


def model_figure(read: Read, *, models: list[str] = []) -> Picture:
    """Draw the models.

    `models`: which ones, by default all.
    """
    from rankfall.identity.attribution.figure import draw_networks

    table = select_models(read("model_attribution"), "model_attribution", models)
    seeded = table.seed.notna().any()  # pretrained weights have no seed
    seeded_table = table.assign(line=name_measurements(table), seed=table.seed.fillna(-1))
    shown = {str(name): part for name, part in seeded_table.groupby("line")}
    lengths = seeded_table["length"].unique()
    about = f" Numbers are {describe_lines(seeded_table, ['line'], band='')}." if seeded else ""
    return draw_networks(shown, about, int(lengths[0]) if len(lengths) == 1 else None, published=True)
