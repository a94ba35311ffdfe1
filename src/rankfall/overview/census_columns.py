"""Columns that the tables `census` and `census_layers` share."""

from rankfall.census.outcomes import FACTORS
from rankfall.report.schema import declare_columns

CHANGES = {
    f"{group}_{name}": f"{matrices} times {factor:g}"
    for group, matrices in (
        ("weights", "all weight matrices and embeddings"),
        ("layers", "the weight matrices of the layers"),
    )
    for name, factor in FACTORS.items()
}
OF_TYPE = declare_columns(
    """
    type text: the library's name of the model type
    size text: small: narrow, with weights as large as the released ones; wide: of the released width, with few layers, whose states
        alone are measured; released
    outcome text: measured; or why not: no model, no package, needs the network, needs a checkpoint's configuration, no stream (these
        are not eligible), not built, refused, fails, over a limit
    reason text: why it is not measured, or what part of it was; else empty
    transformers text: version of the library
    family text: folder of the library that its code lies in
    class text?: class of the model that was built; null: none was
    year int?: year of the copyright line of its configuration's file; null: see year_reason
    year_reason text: why there is no year; else empty
    inputs text?: what it ran on: text, pictures, sound, series, states; null: nothing
    parameters int?: weights of the model that was built; null: none was built
    streams int?: residual streams that were found; null: none
    """
)
OF_STREAM = declare_columns(
    """
    stream text: which stream of the type: encoder, decoder; empty where there is one, or none
    layers int?: its layers
    width int?: dimension of a token's vector
    tokens int? [tokens]: of a sample
    samples int?: of the batch
    kind text?: direction, mixer and place of the norm, as `rankfall check` has them
    mixer text?: attention (weights by softmax), mixing without softmax, hybrid, or none
    mixers text?: classes of the modules that mix tokens, the most frequent first
    mask text?: causal: changing a token changes no earlier one; bidirectional; some layers causal; nothing mixes tokens. By trial
    position text?: where most equal tokens become different rows: in the states (that enter the first layer), in the layers; or only a
        few rows do; or none. Null: tokens cannot be made equal
    distinct_first int?: different rows of equal tokens in the state that enters
    distinct_last int?: and in the last state
    equal_tokens text?: where tokens were made equal: in the inputs, or in the first state
    skips bool?: whether layers add to a state, or replace it
    parallel bool?: whether branches of a layer read the same state
    dtype text?: number format of the pass
    norm text?: layer (blind to size and to a constant), rms (blind to size), or none; by trial of its modules. Null: see reasons
    norm_class text?: classes of these modules
    norm_place text?: before, behind or inside the branch, after the addition
    size_free float?: share of the branches that do not see the size of the state
    skip_scale float?: factor of the state from one addition to the next; null: a norm between
    init_std float?: standard deviation of the weight matrices of the layers at the released size, median
    init_std_scaled float?: median of it times sqrt(fan in), which the small model has too
    as_released float?: share of the weight matrices of the layers whose std x sqrt(fan in) was brought to that of the released model;
        null: none is drawn
    kept_depth_2 float?: kept by the type built with twice as many layers; null: it has not as many, see reasons
    init_std_least float?: smallest of a matrix
    init_std_most float?: largest of a matrix
    reasons text?: why columns are null
    """
)
COST = declare_columns(
    """
    seconds float? [s] provenance: of a processor, for the type
    megabytes int? [MB] provenance: most memory of its process
    """
)
SHARED = [column.name for column in (*OF_TYPE, *OF_STREAM, *COST)]
