"""model_token_identity.parquet: how often a hidden state of a real model identifies the token of its sentence that it came from."""

from rankfall.identity.token_identity.columns import TOKEN_COLUMNS, TOKEN_KEY
from rankfall.rank.model_residuals.columns import MODEL_COLUMNS
from rankfall.report.schema import Column, Table


def model_token_identity() -> Table:
    return Table(
        "model_token_identity",
        "a model x phase x seed x variant x layer x map x loss x layer trained on x candidates x distance",
        (*MODEL_COLUMNS, Column("variant", "text", "what is left of every block: see docs/models.md"), *TOKEN_COLUMNS),
        key=("model", "revision", "phase", "text", "length", "dtype", "variant", "seed", *TOKEN_KEY),
        cells=False,
    )
