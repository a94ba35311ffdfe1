"""The interactive charts of the page, as data: what each is drawn from, and what a reader may choose.

A chart is there where its table is. `lines`: y over x, a line a value of `line`, mean and deviation over seeds. `points`: one value a line.
`grid`: a colour for each pair of x and y.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

NETWORK = ("task", "training", "depth", "apart")  # what networks of one architecture differ in
MODEL = ("model", "phase", "definition", "text", "length", "dtype")  # what measurements of models differ in
MENUS = {  # where a column's name does not say what is chosen
    "apart": "other settings",
    "evaluation": "attention of a path",
    "paths": "number of paths",
    "sentinels": "special tokens",
    "phase": "weights",
    "definition": "what a variant leaves out",
    "length": "tokens of a text",
    "dtype": "number format",
    "which": "term",
    "of_head": "head",
    "alpha": "weight of the attention",
    "map": "way back",
    "loss": "map trained by",
    "candidates": "searched among",
    "distance": "nearest by",
    "kept_tokens": "tokens counted",
    "other": "compared with",
}


@dataclass(frozen=True)
class Chart:
    """`line`: a column, or one of rankfall.report.page.rows.DERIVED; `choose`: columns with a menu each, of which one value is shown;
    `where`: rows that it is drawn from; `most`: of these columns only the greatest value of each network."""

    name: str
    study: str  # one of rankfall.report.headlines.STUDIES
    title: str
    text: str
    table: str
    x: str
    y: str
    x_title: str
    y_title: str
    kind: Literal["lines", "points", "grid"] = "lines"
    line: str = "architecture"
    choose: tuple[str, ...] = NETWORK
    where: Mapping[str, Any] = field(default_factory=dict)
    most: tuple[str, ...] = ()
    scale: Literal["linear", "log", "symlog"] = "linear"
    value: str = ""  # of a grid: what the colour is
    value_title: str = ""
    start: Mapping[str, Any] = field(default_factory=dict)  # menus' first choice, where there is such a value

    @property
    def measured(self) -> str:
        """The column of its numbers."""
        return self.value or self.y

    @property
    def measured_title(self) -> str:
        return self.value_title or self.y_title


TALL = "residual (1: as different as can be, 0: equal)"
RESIDUAL = {"place": "state", "matrix_norm": "composite", "centre": "mean", "quantity": "residual"}
CHARTS = (
    Chart(
        "residual",
        "rank",
        "Residual by layer",
        "How different the tokens still are: 1 where they differ as much as they can, 0 where all are one vector. A line that falls "
        "is an architecture that collapses.",
        "residuals",
        "layer",
        "value",
        "layer",
        TALL,
        where=RESIDUAL,
    ),
    Chart(
        "law",
        "rank",
        "Residual without a rounding floor",
        "Computed without rounding, so that it can be followed far below what numbers of a computer resolve. Where the exponent grows by "
        "the same factor in every layer, collapse is doubly exponential; where it grows by the same amount, exponential.",
        "law",
        "layer",
        "log10_residual",
        "layer",
        "residual, as a power of ten",
        scale="symlog",
    ),
    Chart(
        "orders",
        "rank",
        "Order of contraction of every kind of attention",
        "By what turns scores into weights (rows) and how places enter the scores (columns), without skip connections and MLPs. 3: "
        "residuals are cubed in every layer, so rank is lost doubly exponentially; 1: they shrink by a factor; 0: they do not vanish.",
        "orders",
        "position",
        "normaliser",
        "position encoding",
        "normaliser",
        kind="grid",
        line="normaliser",
        choose=("attention", "mask", "sentinels", "heads"),
        start={"attention": "multihead", "mask": "none", "sentinels": "none"},
        where={"block": "attention alone", "quantity": "res", "biases": True},
        value="order",
        value_title="order",
    ),
    Chart(
        "paths",
        "rank",
        "Accuracy of paths by their length",
        "A path goes through one head of some layers and around the others by their skip connections. Accuracy of the sum of a few random "
        "paths of each length alone: by the theory of rank collapse short ones do most.",
        "paths",
        "length",
        "accuracy",
        "layers that a path goes through",
        "accuracy",
        choose=(*NETWORK, "evaluation", "paths"),
        where={"kind": "path"},
    ),
    Chart(
        "decomposition",
        "rank",
        "Output by the length of paths",
        "A network's output is a sum over all its paths, which is exact for networks of attention and skip connections. Share of the "
        "output that the paths of each length make; shares can be negative and add up to 1 with that of the biases.",
        "decomposition",
        "length",
        "output_share",
        "layers that a path goes through",
        "share of the output",
        where={"term": "paths"},
        start={"training": "converged"},
    ),
    Chart(
        "path_counts",
        "rank",
        "How many paths have which length",
        "Counted from a model's number of layers and heads alone: share of all its paths.",
        "path_counts",
        "length",
        "proportion",
        "layers that a path goes through",
        "share of all paths",
        line="model",
        choose=(),
    ),
    Chart(
        "models",
        "rank",
        "Residual by layer of real models",
        "Transformer: the model as it is; SAN: its attention alone, without skip connections and MLPs; SAN+skip and SAN+MLP: with these.",
        "model_residuals",
        "layer",
        "value",
        "layer",
        TALL,
        line="variant",
        choose=MODEL,
        start={"model": "bert-base-cased", "definition": "clean"},
        where={"centre": "mean", "metric": "composite"},
    ),
    Chart(
        "model_law",
        "rank",
        "Residual of real models without a rounding floor",
        "The same, computed without rounding: models without skip connections lose rank within a few layers.",
        "model_law",
        "layer",
        "log10_residual",
        "layer",
        "residual, as a power of ten",
        line="variant",
        choose=MODEL,
        start={"model": "bert-base-cased", "definition": "clean"},
        scale="symlog",
    ),
    Chart(
        "chains",
        "rank",
        "Products of a model's attention matrices",
        "One attention matrix from each of so many layers, multiplied: how far the product is from a matrix of rank 1, which gives all "
        "tokens the same. Mean over random paths.",
        "chains",
        "chain",
        "residual",
        "matrices in the product",
        "residual of rank 1",
        line="phase",
        choose=tuple(name for name in MODEL if name != "phase"),
        scale="log",
    ),
    Chart(
        "circle",
        "rank",
        "Two points on a circle, moved again and again",
        "A network has learned to move points along a circle by a step, and is applied to its own output. Distance of two points that "
        "start opposite to each other: 0 where they have become one.",
        "circle",
        "step",
        "distance",
        "applications of the network",
        "distance of the two points",
    ),
    Chart(
        "probe",
        "position",
        "Places that attention can tell apart",
        "Equal tokens go in: how many different vectors come out, at random weights. Where it is 1, no training can name a place.",
        "probe",
        "position",
        "normaliser",
        "position encoding",
        "normaliser",
        kind="grid",
        line="normaliser",
        choose=("attention", "mask", "sentinels", "tokens", "depth"),
        start={"attention": "multihead", "mask": "none", "sentinels": "none"},
        value="untrained_rows",
        value_title="different vectors",
    ),
    Chart(
        "probe_trained",
        "position",
        "Places named after training, by length",
        "Accuracy of naming the places of equal tokens; beyond the trained lengths a network has to extrapolate.",
        "probe_trained",
        "length",
        "accuracy",
        "tokens",
        "accuracy",
        choose=NETWORK,
    ),
    Chart(
        "extrapolation",
        "position",
        "Accuracy on longer text",
        "Accuracy of filling in masked tokens at a multiple of the trained length, as a share of that at the trained length.",
        "extrapolation",
        "times",
        "kept",
        "length of the text, as a multiple of the trained length",
        "share of the accuracy kept",
        choose=NETWORK,
    ),
    Chart(
        "offsets",
        "position",
        "What is learned about each offset",
        "B: what the position encoding adds to the score of a token so many places before (right) or after (left); C: what the normaliser "
        "urpe multiplies its weight by.",
        "offsets",
        "offset",
        "value",
        "offset: place of the token that looks, less that of the one looked at",
        "what is added or multiplied by",
        choose=(*NETWORK, "which", "layer", "of_head"),
        start={"which": "B", "of_head": 1},
    ),
    Chart(
        "influence",
        "position",
        "Influence of each place on the last token, untrained",
        "Of networks whose tokens see only those before them, by derivatives (jacobian), beside formulas for it (the others): the less "
        "influence a place has, the less the last token knows of it.",
        "influence",
        "place",
        "share",
        "place of a token",
        "share of the influence",
        line="curve",
        scale="log",
        choose=("depth", "length", "alpha"),
        where={"quantity": "share"},
    ),
    Chart(
        "cell_influence",
        "position",
        "Influence of each place on the last token, trained",
        "The same of networks of this run, after each of their layers.",
        "cell_influence",
        "place",
        "share",
        "place of a token",
        "share of the influence",
        choose=(*NETWORK, "layer"),
        start={"training": "converged"},
    ),
    Chart(
        "free",
        "identity",
        "Free directions of attention weights",
        "In how many directions a row of attention weights can change without any change of the layer's output, mean over heads. More than "
        "0: the weights do not say by themselves where the output comes from.",
        "attention_identity",
        "layer",
        "value",
        "layer",
        "free directions",
        choose=(*NETWORK, "tolerance"),
        start={"training": "converged", "tolerance": 1e-6},
        where={"quantity": "null", "left_out": "nothing"},
        most=("tokens",),
    ),
    Chart(
        "model_free",
        "identity",
        "Free directions of attention weights of real models",
        "The same of models, by the length of the text: weights over more tokens than a head has dimensions always have some.",
        "model_attention_identity",
        "layer",
        "value",
        "layer",
        "free directions",
        line="model",
        choose=(*MODEL[1:], "tolerance"),
        start={"tolerance": 1e-6},
        where={"quantity": "null", "left_out": "nothing"},
    ),
    Chart(
        "identity",
        "identity",
        "Tokens found again, by layer",
        "A map leads each token's state back towards the embeddings: share of the tokens for which their own is then the nearest. Naive: "
        "without a map.",
        "token_identity",
        "layer",
        "rate",
        "layer",
        "share of the tokens found",
        choose=(*NETWORK, "map", "loss", "candidates", "distance"),
        start={
            "training": "converged",
            "map": "linear",
            "loss": "cosine",
            "candidates": "sentence",
            "distance": "cosine",
        },
        where={"own": True},
    ),
    Chart(
        "model_identity",
        "identity",
        "Tokens of real models found again, by layer",
        "The same of models, as they are (transformer) or with parts left out.",
        "model_token_identity",
        "layer",
        "rate",
        "layer",
        "share of the tokens found",
        line="variant",
        choose=(*MODEL, "map", "loss", "candidates", "distance"),
        start={"map": "linear", "loss": "cosine", "candidates": "sentence", "distance": "cosine"},
        where={"own": True},
    ),
    Chart(
        "own_share",
        "identity",
        "Own share of a token's state",
        "How much of a token's state comes from its own input, by several ways to attribute it.",
        "attribution",
        "layer",
        "value",
        "layer",
        "own share",
        choose=(*NETWORK, "method", "kept_tokens"),
        start={"training": "converged", "method": "jacobian", "kept_tokens": "all"},
        where={"quantity": "own share"},
    ),
    Chart(
        "model_own_share",
        "identity",
        "Own share of a token's state in real models",
        "The same of models, a line a way to attribute: derivatives (jacobian), attention weights, norms of what is added, or taking the "
        "token out (ablation).",
        "model_attribution",
        "layer",
        "value",
        "layer",
        "own share",
        line="method",
        choose=(*MODEL, "kept_tokens"),
        start={"kept_tokens": "all", "definition": "clean"},
        where={"quantity": "own share"},
    ),
    Chart(
        "accuracy",
        "use",
        "What was learned",
        "Test accuracy of each architecture, highest first.",
        "cells",
        "architecture",
        "test_accuracy",
        "",
        "test accuracy",
        kind="points",
        choose=("setting",),
        where={"trained": True},
    ),
    Chart(
        "references",
        "use",
        "What can be had without mixing tokens",
        "Test accuracy of predictors that see a token's place, the token, or both; oracle knows all answers but must say the same for "
        "equal tokens of a sample.",
        "references",
        "predictor",
        "accuracy",
        "",
        "test accuracy",
        kind="points",
        line="predictor",
        choose=("setting", "architecture"),
    ),
    Chart(
        "chance",
        "use",
        "What a guess is worth",
        "Chance of each task: test accuracy of the best guess that never sees an input.",
        "datasets",
        "task",
        "chance",
        "",
        "chance",
        kind="points",
        line="task",
        choose=(),
        where={"split": "test"},
    ),
    Chart(
        "training",
        "use",
        "In training",
        "Loss and accuracy by epoch.",
        "training",
        "epoch",
        "value",
        "epoch",
        "value",
        choose=(*NETWORK, "split", "metric"),
        where={"trained": True},
        start={"split": "test", "metric": "accuracy"},
    ),
)
