"""model_residuals.parquet: residual of a real model's tokens, layer by layer."""

from rankfall.report.schema import Column, Table

MODEL_COLUMNS = (
    Column("model", "text", "hub name, folder, or model type of the library"),
    Column("model_type", "text", "the library's name of the family"),
    Column("revision", "text", "commit or digest of the weights; `init` for weights drawn from the seed"),
    Column("phase", "text", "init or pretrained"),
    Column("definition", "text", "of the variants: clean, or published (what the published code really keeps)"),
    Column("seed", "int", "names the initialisation; null for pretrained weights", nullable=True),
    Column("text", "text", "where the tokens come from"),
    Column("tokenizer", "text", "own: the model's; trained: learned from the text; none: numbers drawn, or pictures"),
    Column("length", "int", "tokens of a sample", unit="tokens"),
    Column("layers", "int", "layers of the model"),
    Column("heads", "int", "attention heads of a layer"),
    Column("width", "int", "dimension of a token's vector"),
    Column("dtype", "text", "number format of the forward pass; metrics are always computed in float64"),
)


def model_residuals() -> Table:
    """Declare the table: one row per number."""
    return Table(
        "model_residuals",
        "a model x phase x definition x seed x variant x layer x sample x metric x centre",
        (
            *MODEL_COLUMNS,
            Column("variant", "text", "what is left of every block: see docs/models.md"),
            Column("layer", "int", "0 is the state that enters the first layer"),
            Column("sample", "int", "which text of the batch"),
            Column(
                "metric",
                "text",
                "norm of the residual (composite, l1, linf, frobenius), or sigma_ratio, stable_rank; without_first, without_largest: "
                "composite, without the first token, or without the three channels of the largest mean square in the sample",
            ),
            Column(
                "centre", "text", "mean of the tokens, best (minimises the norm, as for `residuals`), or none (spectra)"
            ),
            Column(
                "value",
                "float",
                "residual over the norm of the whole state; for spectra the number itself; null: see value_reason",
                nullable=True,
            ),
            Column(
                "absolute",
                "float",
                "the residual itself; null for stable_rank, and beyond the range of float64",
                nullable=True,
            ),
            Column(
                "floor",
                "bool",
                "the value is rounding noise of `dtype`; null for stable_rank, or no value",
                nullable=True,
            ),
            Column(
                "value_reason",
                "text",
                "why there is no value: a state that is not finite, zero, or beyond the range of `dtype`; else empty",
                nullable=True,
            ),
        ),
        key=(
            "model",
            "revision",
            "phase",
            "definition",
            "text",
            "length",
            "dtype",
            "variant",
            "seed",
            "layer",
            "sample",
            "metric",
            "centre",
        ),
        cells=False,
    )
