"""Declare the tables `law` and `model_law` and what is shown of them: residuals without a rounding floor, and the theorems' bounds, in
networks and on the weights of real models."""

from collections.abc import Iterable

from rankfall.annotations import DataFrame, Series
from rankfall.report.headlines import Headline, all_rows, at_last
from rankfall.report.page.chart import MODEL, Chart
from rankfall.report.page.question import ask_range
from rankfall.report.published_numbers import read_published
from rankfall.report.schema import MODEL_COLUMNS, Table, declare_columns, declare_table
from rankfall.report.selection import SPECS
from rankfall.report.style import power

# The bounds on one layer, shared with model_law. From log10_factor on they are null unless `condition`; `theory_reason` says so.
ONE_LAYER = declare_columns(
    """
    score_range float?: largest spread within a row of E = R W_QK R^T / sqrt(d), over heads; 0 below 1e-308
    condition bool?: whether that is at most 1.256, as the bounds require
    log10_beta float? [log10]: max_h |W_QK,h|_1 |W_h|_1,inf of the layer
    gamma float?: max_h sqrt(sum_i range_i(E_h) / (2 |E_h|_1))
    log10_factor float? [log10]: 4 gamma beta H lambda / sqrt(d); this and all bounds are null where their condition fails
    log10_contraction float? [log10]: that times |res(X_l-1)|^2: what the lemma says the residual is multiplied by
    vacuous bool?: whether that allows growth, so that the lemma says nothing
    log10_lemma float? [log10]: one-layer bound: log10_factor times |res(X_l-1)|^3, from the true residual
    lemma_slack float? [log10]: how far that is above what the layer left; null too where rounding of larger logs hides it
    log10_lemma_no_gamma float? [log10]: the same with gamma = 1, as first published
    lemma_no_gamma_slack float? [log10]: how far that is above what the layer left
    log10_proven float? [log10]: one-layer bound with a proof for any heads, about the token mean, no gamma: from the norms of E_h, R
        and W_h
    proven_slack float? [log10]: how far that is above what the layer left; never negative
    """
)


def columns() -> Table:
    return declare_table(
        "law",
        "each cell, layer and test sample",
        """
        layer int: 0 is the embedding
        sample int: which test sample, from 0
        method text: centred propagation, or a plain float64 pass where no centred form is known
        method_reason text: why not centred; empty otherwise
        log10_residual float? [log10]: |res(X)|/|X|, composite norm, token mean; null: see value_reason
        value_reason text?: why there is no log10_residual: rows identical to the last digit, or a state beyond the range of float64;
            else empty
        floor bool: whether that is rounding noise, as it may be where the method is float64
        log10_absolute float? [log10]: |res(X)|, composite norm, token mean: the left side of every bound
        exponent float?: d log|res(X_l)| / d log|res(X_l-1)|: the layer's local exponent
        log10_float64 float? [log10]: the relative residual by a plain float64 pass; null: exactly zero, or out of its range
        float64_floor bool: whether that is rounding noise
        log10_float32 float? [log10]: the relative residual by a plain float32 pass; null: exactly zero, or out of its range
        float32_floor bool: whether that is rounding noise
        theory_applies bool: whether layers up to this one are what the theorems speak of
        theory_reason text: why not, or whose condition fails, so that bounds of this layer or over all layers are null; else empty
        """,
        ONE_LAYER,
        """
        log10_lipschitz float? [log10]: lambda: Lipschitz constant of the layer's MLP in the composite norm; 0 without MLP
        condition_all bool?: whether `condition` holds in this and every earlier layer
        log10_theorem float? [log10]: bound over all layers from the input's residual; null unless `condition_all`
        theorem_slack float? [log10]: how far that is above the residual
        log10_theorem_no_gamma float? [log10]: the same with gamma = 1, as first published
        theorem_no_gamma_slack float? [log10]: how far that is above the residual
        theorem_contracts bool?: whether the input is in the region where log10_theorem decays: log10_contraction, at the input and the
            largest factor so far, below 0
        """,
        key="layer sample",
    )


def has_no_residual(table: DataFrame) -> Series:
    """Check whether a row of the law has no residual, because all its vectors are equal or zero, or because it is rounding noise."""
    return table.log10_residual.isna() | table.floor.fillna(False).astype(bool)


def clear(table: DataFrame, by: Iterable[str] = SPECS) -> Series:
    """Check whether a row of the law comes before the first layer at which a row of its group lacks a residual.

    A mean over the remaining rows of a group would be over other networks than the point before it. A group is all seeds and samples,
    unless `by` adds more columns.
    """
    groups = [table[name] for name in by if name in table]
    first = table.layer.where(has_no_residual(table)).groupby(groups, dropna=False).transform("min")
    return ~(table.layer >= first).fillna(False).astype(bool)


def beyond_range(rows: DataFrame) -> dict[str, str]:
    """Return the networks whose state leaves the range of float64 in a sample, with the layer. This is neither rounding nor 0."""
    if "value_reason" not in rows:
        return {}
    gone = rows[rows.log10_residual.isna() & rows.value_reason.fillna("").str.startswith("the state")]
    first = gone.sort_values("layer").groupby("key")[["layer", "value_reason"]].first()
    return {key: f"from layer {row.layer} on there is none: {row.value_reason}" for key, row in first.iterrows()}


def log_residual(rows: DataFrame) -> DataFrame:
    """Return the numbers, without those from the first layer at which a sample's rows are identical to the last digit or rounding noise."""
    last = at_last(rows).groupby("key").log10_residual.mean()
    gone = rows[has_no_residual(rows)].groupby("key").layer.min().astype(float)
    numbers = last.where(~last.index.isin(gone.index)).rename("number").to_frame().join(gone.rename("gone"))
    reasons = beyond_range(rows)
    why = [
        "" if missing != missing else reasons.get(key) or f"at layer {missing:.0f} it is rounding noise, or 0"
        for key, missing in numbers.gone.items()
    ]
    return numbers.assign(why=why).reset_index()[["key", "number", "why"]]


HEADLINES = (
    Headline(
        "log_residual",
        "residual without rounding (log10)",
        "log10 of the relative residual after the last block, by centred propagation, which has no rounding floor, or by float64 where "
        "that is above its floor; geometric mean over test samples, 4 by default, so it differs from `residual at the last layer`",
        ("layer", "sample", "method", "log10_residual", "floor"),
        all_rows,
        log_residual,
        unit="log10",
        digits=1,
        place=30,
    ),
)


CHARTS = (
    Chart(
        "law",
        "Residual without a rounding floor",
        "Computed without rounding, so that it can be followed far below what numbers of a computer resolve. Where the exponent grows by "
        "the same factor in every layer, collapse is doubly exponential; where it grows by the same amount, exponential. A "
        "line ends where that cannot be done and what is left is rounding noise. Geometric means over test samples, 4 by default, so "
        "they differ from the means of the residual by layer.",
        "layer",
        "log10_residual",
        "layer",
        "residual, as a power of ten",
        derive={"clear": clear},
        where={"clear": True},
        scale="symlog",
        opening=True,
        place=20,
    ),
)


SENTENCES = (
    ask_range(
        "How small does the residual become?",
        "log_residual",
        "at the last layer the residual without rounding (geometric mean) is largest in",
        power,
        place=60,
    ),
)


DATA = ["rank/law/published.csv"]
PUBLISHED = read_published(__file__)


def model_columns() -> Table:
    """Declare the table `model_law`: one row per state."""
    return declare_table(
        "model_law",
        "each model, phase, seed, variant, layer and sample",
        MODEL_COLUMNS,
        """
        variant text: what is left of every block: see docs/models.md
        layer int: 0 is the state that enters the first layer
        sample int: which text of the batch
        log10_residual float? [log10]: |res(X)|/|X|, composite norm, token mean, without a floor; null: see value_reason
        value_reason text?: why there is no log10_residual: rows identical to the last digit, or a state beyond the range of float64;
            else empty
        direct float?: the same, not its log, computed in the ordinary way in float64; null: the state is beyond its range
        exponent float?: of the layer below: d log res out / d log res in; 3 where the cubic law holds
        log10_attention float? [log10]: |res(SA(X_l-1))|, what the layer below leaves before its norm: left of every bound
        theory_applies bool: whether there is a layer below whose attention the lemma speaks of
        theory_reason text: why not, or that its condition fails, so that bounds are null; else empty
        """,
        ONE_LAYER,
        key="model revision phase text length variant seed layer sample",
        cells=False,
    )


MODEL_CHARTS = (
    Chart(
        "model_law",
        "Residual of real models without a rounding floor",
        "The same, computed without rounding: models without skip connections lose rank within a few layers.",
        "layer",
        "log10_residual",
        "layer",
        "residual, as a power of ten",
        line="variant",
        choose=MODEL,
        start={"model": "bert-base-cased", "definition": "clean"},
        scale="symlog",
        place=80,
    ),
)
