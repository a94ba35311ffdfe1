"""attribution.parquet: share of a token's state that comes from each token of the input, in cells."""

from rankfall.report.schema import Column, Table

ATTRIBUTION_COLUMNS = (
    Column("layer", "int", "1 is the first block"),
    Column(
        "method",
        "text",
        "jacobian: Frobenius norm of the whole block d e_j / d x_i, x_i what enters the first layer; jacobian without outliers: "
        "without the outlier features of e_j; jacobian x input: its columns times x_i; summed gradient: of the sum of e_j's features; "
        "attention: mean over heads of this layer's weights; rollout: layers' (attention + 1) / 2 multiplied; norms: of weighted values "
        "with skip and norm, multiplied over layers; ablation: how far e_j moves when x_i becomes the mean of the tokens. Of a mixing "
        "ratio: what is counted (attention; norms; the same and skip; and norm)",
    ),
    Column("kept_tokens", "text", "all, or without first: the first token is left out as i and as j"),
    Column(
        "quantity",
        "text",
        "own share: c_jj, c_ji being contributions divided by their sum over i; not first: whether another token has the largest share; "
        "distance ...: share of tokens that far away; mixing ratio: what others add in this layer alone, |others| / (|others| + |own|); "
        "spearman: rank correlation over i with the method `other`, of others: without i = j",
    ),
    Column("other", "text", "the method that ranks are compared with; null: not a correlation", nullable=True),
    Column("value", "float", "mean over tokens j and samples; null: there is none, see `value_reason`", nullable=True),
    Column("median", "float", "over tokens and samples; null for `not first`", nullable=True),
    Column("low", "float", "5% quantile", nullable=True),
    Column("lower", "float", "quartile", nullable=True),
    Column("upper", "float", "quartile", nullable=True),
    Column("high", "float", "95% quantile", nullable=True),
    Column("deviation", "float", "over samples, of their means; null: one sample", nullable=True),
    Column(
        "error",
        "float",
        "standard error of `value` from drawing directions (jackknife); null: nothing is drawn, the value is exact",
        nullable=True,
    ),
    Column("median_error", "float", "the same of `median`", nullable=True),
    Column(
        "median_low",
        "float",
        "lower end of the interval of 95% of `median`, over samples drawn anew with all their tokens; null: fewer than 8 samples",
        nullable=True,
    ),
    Column("median_high", "float", "its upper end", nullable=True),
    Column(
        "directions",
        "int",
        "random directions of e_j that estimate a block's norm; null: all D, exact",
        nullable=True,
    ),
    Column("samples", "int", "samples that it is over"),
    Column("tokens", "int", "tokens j that it is over, of all samples"),
    Column("value_reason", "text", "why there is no value; empty otherwise"),
)
ATTRIBUTION_KEY = ("layer", "method", "kept_tokens", "quantity", "other")


def attribution() -> Table:
    """Declare the table: one row per number."""
    return Table(
        "attribution",
        "a cell x layer x method x kept tokens x quantity",
        ATTRIBUTION_COLUMNS,
        key=ATTRIBUTION_KEY,
    )
