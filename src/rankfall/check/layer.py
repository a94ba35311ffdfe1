"""What is known of one layer, and of a whole stream."""

from __future__ import annotations

from dataclasses import dataclass, field

from rankfall.check.bands import ReferenceBand


@dataclass
class LayerReport:
    """Of the state that leaves a layer (0: that enters the first), and of the attention in it. None where there is none."""

    layer: int
    name: str = ""
    parts: list[str] = field(default_factory=list)  # what its branches are
    residual: float | None = None
    without_first: float | None = None  # the residual without the first token
    without_largest: float | None = None  # and without the largest channels instead
    norm: float | None = None  # of a token's vector, root of the mean square over tokens
    effective_rank: float | None = None
    entropy: float | None = None  # of a row of attention, in nats
    largest: float | None = None  # weight of a row
    first: float | None = None  # share of the first token
    query_gradient: float | None = None
    key_gradient: float | None = None
    gradient: float | None = None  # with respect to this state
    orders: dict[str, float] = field(default_factory=dict)  # by mixing branch
    distinct: int | None = None  # rows, where all tokens are equal
    influence_first: float | None = None
    influence_middle: float | None = None
    influence_last: float | None = None


@dataclass
class Outcome:
    """A model with one change: what the change is, and what it gives."""

    name: str
    residuals: list[float | None]
    gradient: float | None  # of the input
    shorter: float = 1.0  # length of the first state over that of the last
    does: str = ""  # what the branch does, where one was left out

    @property
    def last(self) -> float | None:
        return self.residuals[-1]


@dataclass
class StreamReport:
    """All that is found of one stream."""

    stream: str
    summary: str
    kind: str  # of the reference band
    depth: int
    width: int
    tokens: int
    samples: int
    causal: bool
    layers: list[LayerReport]
    variants: dict[str, list[float | None]] = field(default_factory=dict)
    without: list[Outcome] = field(default_factory=list)  # the branches of the layer that loses most
    interventions: list[Outcome] = field(default_factory=list)
    bands: list[ReferenceBand] = field(default_factory=list)  # of other networks, at birth and after training
    silent: int = 0  # branches that return zero
    equal_tokens: str = ""  # where they were made equal
    floor: float = 0.0  # a residual below is rounding of the number format that it was measured in
    verdict: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)  # why the numbers are of a part, or not of what they seem to be
    part: bool = False  # other parts of the same sequence of blocks are measured apart, or not at all
    start: float | None = None  # the residual before the first of these parts, where it is known
    reasons: dict[str, str] = field(default_factory=dict)  # why a column is empty
    notes: list[str] = field(default_factory=list)
    worst: int | None = None  # the layer that loses most

    @property
    def shorter(self) -> float:
        return compare_lengths(self.layers[0].norm, self.layers[-1].norm)


def compare_lengths(first: float | None, last: float | None) -> float:
    """Length of the first state over that of the last; 1 where they have none."""
    return first / last if first and last else 1.0
