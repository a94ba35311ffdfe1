"""The headline numbers of every study, as data: what each is, and the table and columns that it comes from.

The scorecard's columns, its figure, the page and docs/tables.md all say it with these words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

STUDIES = {
    "rank": "Rank: do the tokens become the same vector?",
    "position": "Position: can it tell places apart?",
    "identity": "Identity: which token did a vector come from?",
    "use": "Use and cost: what does it learn, and how long does it take?",
}


@dataclass(frozen=True)
class Headline:
    """One number of an architecture at a setting, or of its components at any. `first`: the networks that it is asked of first; `good`:
    which end of the column keeps more of what depth may lose; `beside`: what the number is compared with (chance, ceiling, floor), each
    a column, with its meaning; `compared_within`: what else than the setting must agree before two numbers are compared; `counted`: what
    a number is a mean over; `near`: two numbers are a tie whose difference is this share of the larger, or less."""

    name: str
    title: str  # a column's heading
    study: str  # one of STUDIES
    meaning: str
    table: str
    columns: tuple[str, ...]  # of that table
    unit: str = ""
    first: Literal["untrained", "trained", "only trained"] = "untrained"
    good: Literal["high", "low"] | None = "high"
    digits: int = 2
    provenance: bool = False  # differs between equal runs: times
    beside: Mapping[str, str] = field(default_factory=dict)
    compared_within: str = ""
    counted: str = "seed"
    near: float = 0.0

    @property
    def components(self) -> bool:
        """Whether it is a number of components, not of networks."""
        return self.table in ("orders", "probe")


HEADLINES = (
    Headline(
        "order",
        "order of its attention",
        "rank",
        "p in out ~ C in^p for nearly identical tokens, of the attention layer by itself: 3 collapses doubly exponentially with depth, "
        "1 exponentially, 0 not at all; deviation: uncertainty of the fit",
        "orders",
        ("order", "uncertainty"),
        good="low",
    ),
    Headline(
        "block_order",
        "order of its block",
        "rank",
        "the same of the whole block, with its skip connection, norm and MLP, but without position, mask and special tokens",
        "orders",
        ("order", "uncertainty"),
        good="low",
    ),
    Headline(
        "residual_last",
        "residual at the last layer",
        "rank",
        "|X - mean of the tokens| / |X| after the last block: 1 where tokens are as different as they can be, 0 where all are one vector",
        "residuals",
        ("value",),
        digits=3,
        beside={"floor": "share of the samples whose residual is rounding noise of float64"},
    ),
    Headline(
        "log_residual",
        "residual without rounding (log10)",
        "rank",
        "log10 of the relative residual after the last block, by centred propagation, which has no rounding floor, or by float64 where "
        "that is above its floor; mean over samples",
        "law",
        ("layer", "sample", "method", "log10_residual", "floor"),
        unit="log10",
        digits=1,
    ),
    Headline(
        "halving_depth",
        "depth that halves the residual",
        "rank",
        "number of blocks after which the residual is half of the embedding's, interpolated between layers in the logarithm",
        "residuals",
        ("layer", "value"),
        unit="layers",
    ),
    Headline(
        "depth_below_tenth",
        "first layer with a residual below 0.1",
        "rank",
        "the first layer after which the residual is below 0.1",
        "residuals",
        ("layer", "value"),
        unit="layers",
        digits=1,
    ),
    Headline(
        "short_paths",
        "share of its accuracy from short paths",
        "rank",
        "how much of the way from chance to the whole network's accuracy paths through at most a third of the layers make by themselves, "
        "each with its own attention; no number where the network is less than 0.05 above chance",
        "paths",
        ("kind", "evaluation", "length", "paths", "accuracy"),
        first="only trained",
        good=None,
    ),
    Headline(
        "probe_rows",
        "places told apart at random weights",
        "position",
        "of a sequence of n equal tokens, how many different outputs its places have, over n; the most of all draws of weights",
        "probe",
        ("untrained_rows", "tokens"),
        beside={
            "chance": "1/n, where all places give the same",
            "ceiling": "what theory allows whatever the weights are",
        },
    ),
    Headline(
        "probe_accuracy",
        "places named after training",
        "position",
        "share of the places of equal tokens that the trained network names, at the longest trained length",
        "probe_trained",
        ("length", "beyond", "accuracy"),
        first="only trained",
        beside={
            "chance": "accuracy of the best single answer for all places",
            "ceiling": "of the best answers with the trained network's distinct rows",
        },
    ),
    Headline(
        "kept",
        "accuracy kept on longer text",
        "position",
        "accuracy on text 4 times as long as in training (or the tested length nearest to that), over that at the trained length",
        "extrapolation",
        ("times", "kept"),
        first="only trained",
        beside={"chance": "what is kept by always naming the most frequent word"},
    ),
    Headline(
        "null_dimension",
        "free directions of attention weights",
        "identity",
        "dimensions in which a row of attention weights of the last layer can change without a change of the output, at tolerance 1e-6; "
        "mean over heads, at the longest sequence",
        "attention_identity",
        ("layer", "attention_head", "tokens", "left_out", "quantity", "tolerance", "value"),
        unit="dimensions",
        first="trained",
        good="low",
    ),
    Headline(
        "identity_rate",
        "tokens found again at the last layer",
        "identity",
        "share of the tokens whose last state a trained linear map leads back to their own embedding, nearest by cosine among the "
        "tokens of the sentence",
        "token_identity",
        ("layer", "map", "loss", "trained_layer", "candidates", "distance", "rate"),
        first="trained",
        beside={"chance": "rate of a guess among the tokens of the sentence"},
    ),
    Headline(
        "own_share",
        "own share at the last layer",
        "identity",
        "how much of a token's last state comes from its own input, by the norms of its derivatives",
        "attribution",
        ("layer", "method", "kept_tokens", "quantity", "value"),
        first="trained",
        beside={"chance": "1/n, where all tokens have equal shares"},
    ),
    Headline(
        "accuracy",
        "test accuracy",
        "use",
        "share of the test set's answers that are right",
        "cells",
        ("test_accuracy", "chance"),
        first="only trained",
        beside={"chance": "the best guess that never sees an input"},
    ),
    Headline(
        "over_chance",
        "accuracy over chance",
        "use",
        "test accuracy less that of the best guess that never sees an input",
        "cells",
        ("test_accuracy", "chance"),
        first="only trained",
        beside={"ceiling": "where every answer is right"},
    ),
    Headline(
        "step_ms",
        "time of a training step (ms)",
        "use",
        "milliseconds of one optimiser step, the network's share of the stack that it was trained in; of steps alone. Networks of one "
        "stack share one reading, which whatever else the machine does makes longer: times within a quarter of each other are a tie",
        "cells",
        ("step_ms", "engine", "device", "threads", "together", "processor"),
        unit="ms",
        first="only trained",
        good="low",
        digits=2,
        provenance=True,
        compared_within="engine, device, threads, number of networks in the stack and processor that `step_ms` belongs to; only equal "
        "ones are compared",
        counted="reading of a stack",
        near=0.25,
    ),
)


def by_name(name: str) -> Headline:
    (found,) = (headline for headline in HEADLINES if headline.name == name)
    return found
