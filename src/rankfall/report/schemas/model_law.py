"""model_law.parquet: residuals of real models below every floor, and the one-layer bound on their weights."""

from rankfall.report.schema import Column, Table
from rankfall.report.schemas.model_residuals import MODEL_COLUMNS


def model_law() -> Table:
    """One row a state."""
    return Table(
        "model_law",
        "a model x phase x seed x variant x layer x sample",
        (
            *MODEL_COLUMNS,
            Column("variant", "text", "what is left of every block: see docs/models.md"),
            Column("layer", "int", "0 is the state that enters the first layer"),
            Column("sample", "int", "which text of the batch"),
            Column(
                "log10_residual",
                "float",
                "relative residual, composite norm, token mean, without a floor; null: rows identical",
                nullable=True,
            ),
            Column("direct", "float", "the same, not its log, computed in the ordinary way in float64", nan=True),
            Column(
                "exponent",
                "float",
                "of the layer below: d log res out / d log res in; 3 where the cubic law holds",
                nullable=True,
            ),
            Column(
                "log10_factor",
                "float",
                "4 gamma H beta / sqrt(d_qk) of the layer above; null at the end and with a skip",
                nullable=True,
            ),
            Column(
                "log10_contraction",
                "float",
                "that times ||res||^2: what the bound says res is multiplied by",
                nullable=True,
            ),
            Column(
                "score_range",
                "float",
                "largest range of a row of scores due to differences between tokens",
                nullable=True,
            ),
            Column("condition", "bool", "the range is at most 1.256, as the bound requires", nullable=True),
            Column("vacuous", "bool", "the bound allows growth, so it says nothing", nullable=True),
        ),
        key=("model", "revision", "phase", "text", "length", "variant", "seed", "layer", "sample"),
        cells=False,
    )
