"""model_attention_identity.parquet: information in the attention weights of real models."""

from rankfall.identity.attention_identity.columns import COLUMNS, KEY
from rankfall.rank.model_residuals.columns import MODEL_COLUMNS
from rankfall.report.schema import Table


def model_attention_identity() -> Table:
    """Declare the table, with the columns of attention_identity for models."""
    return Table(
        "model_attention_identity",
        "a model x phase x seed x layer x head x length x what is left out x quantity x kind x tolerance",
        (*MODEL_COLUMNS, *COLUMNS),
        key=("model", "revision", "phase", "text", "length", "dtype", "seed", *KEY),
        cells=False,
    )
