"""law.parquet: residuals without a floor, and every bound beside them."""

from rankfall.report.schema import Column, Table


def law() -> Table:
    """One row a cell, layer and test sample."""

    def size(name: str, meaning: str, unit: str = "log10") -> Column:
        return Column(name, "float", meaning, unit=unit, nullable=True)

    return Table(
        "law",
        "a cell x layer x test sample",
        (
            Column("layer", "int", "0 is the embedding"),
            Column("sample", "int", "which test sample, from 0"),
            Column("method", "text", "centred propagation, or a plain float64 pass where no centred form is known"),
            Column("method_reason", "text", "why not centred; empty otherwise"),
            size("log10_residual", "|res(X)|/|X|, composite norm, token mean; null: rows identical to the last digit"),
            size("log10_absolute", "|res(X)|, composite norm, token mean"),
            size("exponent", "d log|res(X_l)| / d log|res(X_l-1)|: the layer's local exponent", ""),
            size("log10_float64", "the relative residual by a plain float64 pass; null: exactly zero"),
            Column("float64_floor", "bool", "whether that is rounding noise"),
            size("log10_float32", "the relative residual by a plain float32 pass; null: exactly zero"),
            Column("float32_floor", "bool", "whether that is rounding noise"),
            Column("theory_applies", "bool", "whether layers up to this one are what the theorems speak of"),
            Column("theory_reason", "text", "why not; empty otherwise"),
            size("score_range", "largest spread within a row of E = R W_QK R^T / sqrt(d), over rows and heads", ""),
            Column("condition", "bool", "whether that is at most 1.256, as bounds require", nullable=True),
            size("log10_beta", "max_h |W_QK,h|_1 |W_h|_1,inf of the layer"),
            size("gamma", "max_h sqrt(sum_i range_i(E_h) / (2 |E_h|_1))", ""),
            size("log10_lipschitz", "Lipschitz constant of the layer's MLP in the composite norm; 0 without MLP"),
            size(
                "log10_lemma", "one-layer bound 4 gamma beta H lambda / sqrt(d) |res(X_l-1)|^3, from the true residual"
            ),
            size("lemma_slack", "how far that is above the residual; meaningless unless `condition`"),
            size("log10_lemma_no_gamma", "the same with gamma = 1, as first published"),
            size("log10_proven", "one-layer bound with a proof that needs no gamma, from the norms of E_h, R and W_h"),
            size("proven_slack", "how far that is above the residual; meaningless unless `condition`"),
            size("log10_theorem", "bound over all layers from the input; meaningless unless `condition` in all layers"),
            Column("theorem_contracts", "bool", "whether the input is in the region where that decays", nullable=True),
        ),
        key=("layer", "sample"),
    )
