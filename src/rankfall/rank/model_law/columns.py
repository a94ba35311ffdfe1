"""model_law.parquet: residuals of real models without a rounding floor, and the one-layer bound on their weights."""

from rankfall.rank.law.columns import ONE_LAYER, size
from rankfall.rank.model_residuals.columns import MODEL_COLUMNS
from rankfall.report.schema import Column, Table


def model_law() -> Table:
    """Declare the table: one row per state."""
    return Table(
        "model_law",
        "a model x phase x seed x variant x layer x sample",
        (
            *MODEL_COLUMNS,
            Column("variant", "text", "what is left of every block: see docs/models.md"),
            Column("layer", "int", "0 is the state that enters the first layer"),
            Column("sample", "int", "which text of the batch"),
            size("log10_residual", "|res(X)|/|X|, composite norm, token mean, without a floor; null: see value_reason"),
            Column(
                "value_reason",
                "text",
                "why there is no log10_residual: rows identical to the last digit, or a state beyond the range of float64; else empty",
                nullable=True,
            ),
            Column(
                "direct",
                "float",
                "the same, not its log, computed in the ordinary way in float64; null: the state is beyond its range",
                nullable=True,
            ),
            size("exponent", "of the layer below: d log res out / d log res in; 3 where the cubic law holds", ""),
            size(
                "log10_attention", "|res(SA(X_l-1))|, what the layer below leaves before its norm: left of every bound"
            ),
            Column("theory_applies", "bool", "whether there is a layer below whose attention the lemma speaks of"),
            Column(
                "theory_reason", "text", "why not, or that its condition fails, so that bounds are null; else empty"
            ),
            *ONE_LAYER,
        ),
        key=("model", "revision", "phase", "text", "length", "variant", "seed", "layer", "sample"),
        cells=False,
    )
