"""model_attribution.parquet: share of a token's state that comes from each token of the input, in a real model."""

from rankfall.identity.attribution.columns import ATTRIBUTION_COLUMNS, ATTRIBUTION_KEY
from rankfall.rank.model_residuals.columns import MODEL_COLUMNS
from rankfall.report.schema import Column, Table


def model_attribution() -> Table:
    """Declare the table: one row per number, with the columns of attribution."""
    return Table(
        "model_attribution",
        "a model x phase x seed x layer x method x kept tokens x quantity",
        (
            *MODEL_COLUMNS,
            *ATTRIBUTION_COLUMNS,
            Column(
                "outliers",
                "int",
                "features of this layer's states whose mean size is above six times the median feature's, four at most",
            ),
        ),
        key=("model", "revision", "phase", "definition", "text", "length", "dtype", "seed", *ATTRIBUTION_KEY),
        cells=False,
    )
