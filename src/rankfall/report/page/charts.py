"""The interactive charts of the page, as data: what each is drawn from, and what a reader may choose.

A chart is there where its table is. `lines`: y over x, a line a value of `line`, mean and deviation over seeds. `points`: one value a line.
`grid`: a colour for each pair of x and y.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

NETWORK = ("task", "training", "depth")  # what networks of one architecture differ in


@dataclass(frozen=True)
class Chart:
    """`choose`: columns with a menu each, of which one value is shown; `where`: rows that it is drawn from; `most`: of these columns only
    the greatest value of each network."""

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
    start: Mapping[str, Any] = field(default_factory=dict)  # menus' first choice, where there is such a value

    @property
    def measured(self) -> str:
        """The column of its numbers."""
        return self.value or self.y


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
        "residual |res(X)| / |X|",
        where=RESIDUAL,
    ),
    Chart(
        "law",
        "rank",
        "Residual without a rounding floor",
        "As a power of ten, at initialisation: a line whose power grows by the same factor in every layer is doubly exponential collapse, "
        "one that grows by the same amount is exponential.",
        "law",
        "layer",
        "log10_residual",
        "layer",
        "log10 of the residual",
        scale="symlog",
    ),
    Chart(
        "orders",
        "rank",
        "Order of contraction of every kind of attention",
        "3: residuals are cubed in every layer, so rank is lost doubly exponentially. 1: they shrink by a factor. 0: they do not vanish.",
        "orders",
        "position",
        "normaliser",
        "position in the scores",
        "normaliser",
        kind="grid",
        line="normaliser",
        choose=("attention", "mask", "sentinels", "heads"),
        start={"attention": "multihead", "mask": "none", "sentinels": "none"},
        where={"block": "attention alone", "quantity": "res", "biases": True},
        value="order",
    ),
    Chart(
        "paths",
        "rank",
        "Accuracy of paths by their length",
        "How well paths through so many of the layers do the task by themselves. By the theory of rank collapse short ones do most.",
        "paths",
        "length",
        "accuracy",
        "layers that a path goes through",
        "accuracy",
        choose=(*NETWORK, "evaluation", "paths"),
        where={"kind": "path"},
    ),
    Chart(
        "models",
        "rank",
        "Residual by layer of real models",
        "Models as they are, and with skip connections or MLPs taken out.",
        "model_residuals",
        "layer",
        "value",
        "layer",
        "residual |res(X)| / |X|",
        line="variant",
        choose=("model", "phase"),
        start={"model": "bert-base-cased"},
        where={key: value for key, value in RESIDUAL.items() if key not in ("place", "quantity", "matrix_norm")}
        | {"metric": "composite"},
    ),
    Chart(
        "probe",
        "position",
        "Places that attention can tell apart",
        "Equal tokens in: how many different rows come out, at random weights. Where it is 1, no training can name a place.",
        "probe",
        "position",
        "normaliser",
        "position",
        "normaliser",
        kind="grid",
        line="normaliser",
        choose=("attention", "mask", "sentinels", "tokens", "depth"),
        start={"attention": "multihead", "mask": "none", "sentinels": "none"},
        value="untrained_rows",
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
        "Masked accuracy at a multiple of the trained length, as a share of that at the trained length.",
        "extrapolation",
        "times",
        "kept",
        "length of the text in trained lengths",
        "share of the accuracy kept",
        choose=NETWORK,
    ),
    Chart(
        "free",
        "identity",
        "Free directions of attention weights",
        "In how many directions a row of attention weights can change without a change of the output. More than 0: a weight is not what it "
        "seems to say.",
        "attention_identity",
        "layer",
        "value",
        "layer",
        "null dimension",
        choose=(*NETWORK, "tolerance"),
        start={"training": "converged", "tolerance": 1e-6},
        where={"quantity": "null", "left_out": "nothing"},
        most=("tokens",),
    ),
    Chart(
        "identity",
        "identity",
        "Tokens found again, by layer",
        "Share of the tokens whose state is led back to their own embedding by a map.",
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
        "accuracy",
        "use",
        "What was learned",
        "Test accuracy of each architecture, highest first; the scorecard has it less what a guess is worth that never sees an input.",
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
