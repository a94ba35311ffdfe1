"""Columns that the tables `census` and `census_layers` share."""

from rankfall.census.outcomes import FACTORS
from rankfall.report.schema import Column

SAID_OF_CHANGES = {
    f"{what}_{name}": f"{said} times {factor:g}"
    for what, said in (
        ("weights", "all weight matrices and embeddings"),
        ("layers", "the weight matrices of the layers"),
    )
    for name, factor in FACTORS.items()
}
OF_TYPE = (
    Column("type", "text", "the library's name of the model type"),
    Column(
        "size",
        "text",
        "small: narrow, with weights as large as the released ones; wide: of the released width, with few layers, whose states alone are "
        "measured; released",
    ),
    Column(
        "outcome",
        "text",
        "measured; or why not: no model, no package, needs the network, needs a checkpoint's configuration, no stream (these are not "
        "eligible), not built, refused, fails, over a limit",
    ),
    Column("reason", "text", "why it is not measured, or what part of it was; else empty"),
    Column("transformers", "text", "version of the library"),
    Column("family", "text", "folder of the library that its code lies in"),
    Column("class", "text", "class of the model that was built; null: none was", nullable=True),
    Column("year", "int", "year of the copyright line of its configuration's file; null: see year_reason", nullable=True),
    Column("year_reason", "text", "why there is no year; else empty"),
    Column("inputs", "text", "what it ran on: text, pictures, sound, series, states; null: nothing", nullable=True),
    Column("parameters", "int", "weights of the model that was built; null: none was built", nullable=True),
    Column("streams", "int", "residual streams that were found; null: none", nullable=True),
)  # fmt: skip
OF_STREAM = (
    Column("stream", "text", "which stream of the type: encoder, decoder; empty where there is one, or none"),
    Column("layers", "int", "its layers", nullable=True),
    Column("width", "int", "dimension of a token's vector", nullable=True),
    Column("tokens", "int", "of a sample", unit="tokens", nullable=True),
    Column("samples", "int", "of the batch", nullable=True),
    Column("kind", "text", "direction, mixer and place of the norm, as `rankfall check` has them", nullable=True),
    Column("mixer", "text", "attention (weights by softmax), mixing without softmax, hybrid, or none", nullable=True),
    Column("mixers", "text", "classes of the modules that mix tokens, the most frequent first", nullable=True),
    Column(
        "mask",
        "text",
        "causal: changing a token changes no earlier one; bidirectional; some layers causal; nothing mixes tokens. By trial",
        nullable=True,
    ),
    Column(
        "position",
        "text",
        "where most equal tokens become different rows: in the states (that enter the first layer), in the layers; or only a few rows "
        "do; or none. Null: tokens cannot be made equal",
        nullable=True,
    ),
    Column("distinct_first", "int", "different rows of equal tokens in the state that enters", nullable=True),
    Column("distinct_last", "int", "and in the last state", nullable=True),
    Column("equal_tokens", "text", "where tokens were made equal: in the inputs, or in the first state", nullable=True),
    Column("skips", "bool", "whether layers add to a state, or replace it", nullable=True),
    Column("parallel", "bool", "whether branches of a layer read the same state", nullable=True),
    Column("dtype", "text", "number format of the pass", nullable=True),
    Column(
        "norm",
        "text",
        "layer (blind to size and to a constant), rms (blind to size), or none; by trial of its modules. Null: see reasons",
        nullable=True,
    ),
    Column("norm_class", "text", "classes of these modules", nullable=True),
    Column("norm_place", "text", "before, behind or inside the branch, after the addition", nullable=True),
    Column("size_free", "float", "share of the branches that do not see the size of the state", nullable=True),
    Column("skip_scale", "float", "factor of the state from one addition to the next; null: a norm between", nullable=True),
    Column("init_std", "float", "standard deviation of the weight matrices of the layers at the released size, median", nullable=True),
    Column("init_std_scaled", "float", "median of it times sqrt(fan in), which the small model has too", nullable=True),
    Column(
        "as_released",
        "float",
        "share of the weight matrices of the layers whose std x sqrt(fan in) was brought to that of the released model; null: none is "
        "drawn",
        nullable=True,
    ),
    Column(
        "kept_depth_2", "float", "kept by the type built with twice as many layers; null: it has not as many, see reasons", nullable=True
    ),
    Column("init_std_least", "float", "smallest of a matrix", nullable=True),
    Column("init_std_most", "float", "largest of a matrix", nullable=True),
    Column("reasons", "text", "why columns are null", nullable=True),
)  # fmt: skip
COST = (
    Column("seconds", "float", "of a processor, for the type", unit="s", provenance=True, nullable=True),
    Column("megabytes", "int", "most memory of its process", unit="MB", provenance=True, nullable=True),
)
SHARED = [column.name for column in (*OF_TYPE, *OF_STREAM, *COST)]
