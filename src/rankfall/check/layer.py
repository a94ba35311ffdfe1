"""Results of a check, for one layer and for a whole stream, and the numbers of a state (S, T, D)."""

import math
from dataclasses import dataclass, field

from torch import Tensor

from rankfall.check.bands import RealModel, ReferenceBand
from rankfall.check.named import Result
from rankfall.rank.residual import relative_residual
from rankfall.rank.spectrum import effective_rank

LARGEST = 3  # channels


@dataclass
class LayerReport:
    """Numbers of the state that leaves a layer (0: that enters the first layer) and of its attention. None: not known."""

    layer: int
    name: str = ""
    parts: list[str] = field(default_factory=list)  # name and kind of each branch
    residual: float | None = None
    without_first: float | None = None  # the residual without the first token
    without_largest: float | None = None  # the residual without the largest channels
    norm: float | None = None  # RMS norm of a token's vector over tokens
    effective_rank: float | None = None
    entropy: float | None = None  # of a row of attention, in nats
    largest: float | None = None  # weight of a row
    first: float | None = None  # share of the first token
    query_gradient: float | None = None
    key_gradient: float | None = None
    head_gradients: list[float] = field(default_factory=list)  # of queries or keys, whichever is smaller, by head
    gradient: float | None = None  # with respect to this state
    orders: dict[str, float] = field(default_factory=dict)  # by mixing branch
    distinct: int | None = None  # number of distinct rows if all tokens are equal
    influence_first: float | None = None
    influence_middle: float | None = None
    influence_last: float | None = None


@dataclass
class Outcome:
    """Residuals and gradient of a model after one intervention."""

    name: str
    residuals: list[float | None]
    gradient: float | None  # of the input
    does: str = ""  # the role of the branch, if one was left out

    @property
    def last(self) -> float | None:
        return self.residuals[-1]


@dataclass
class StreamReport:
    """The results of one stream."""

    stream: str
    summary: str
    kind: str  # of the reference band
    depth: int
    width: int
    tokens: int
    samples: int
    causal: bool
    layers: list[LayerReport]
    axes: tuple[int, ...] = (1,)  # of the states, along which tokens lie
    variants: dict[str, list[float | None]] = field(default_factory=dict)
    without: list[Outcome] = field(default_factory=list)  # the branches of the layer that loses most
    interventions: list[Outcome] = field(default_factory=list)
    bands: list[ReferenceBand] = field(default_factory=list)  # of other networks, at birth and after training
    real: list[RealModel] = field(default_factory=list)  # models of released width
    equal_tokens: str = ""  # where tokens were set equal; empty: not possible
    floor: float = 0.0  # a smaller residual is rounding of the dtype
    results: list[Result] = field(default_factory=list)  # of the named checks
    cut: str = ""  # where the stream is cut from the one before
    judged: bool = True  # False: only the columns of states are filled in, and nothing is said of them
    part: bool = False  # other parts of the same sequence of blocks are measured separately, or not at all
    start: float | None = None  # the residual before the first of these parts, if known
    reasons: dict[str, str] = field(default_factory=dict)  # why a column is empty
    notes: list[str] = field(default_factory=list)
    worst: int | None = None  # the layer that loses most

    def result(self, check: str) -> Result:
        """Return the result of a named check."""
        return next(result for result in self.results if result.check == check)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the shape (samples, tokens) of token numbers, or that of no tensor if it may be (tokens, samples) as well."""
        return (0, 0) if self.axes == (0,) and self.samples == self.tokens else (self.samples, self.tokens)


def show_number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}" if 0.1 <= abs(value) < 1000 else f"{value:.2g}"


def fill_state_columns(state: Tensor, layer: LayerReport) -> None:
    """Fill in the columns that need only the state, as means over samples."""
    if state.shape[-2] > 1:  # a last layer may keep the class token alone
        layer.residual = finite_mean(relative_residual(state))
    if state.shape[-2] > 2:
        layer.without_first = finite_mean(relative_residual(state[:, 1:]))
    if state.shape[-2] > 1 and state.shape[-1] > 2 * LARGEST:
        layer.without_largest = finite_mean(relative_residual(without_largest(state)))
    layer.norm = finite_mean(state.pow(2).sum(-1).mean(-1).sqrt())
    layer.effective_rank = finite_mean(effective_rank(state.double()))


def without_largest(state: Tensor) -> Tensor:
    """Return the state without the channels of the largest mean square over all samples and tokens."""
    size = state.pow(2).mean((0, 1))
    kept = size.argsort()[:-LARGEST].sort().values
    return state[..., kept]


def finite_mean(values: Tensor) -> float | None:
    value = float(values.detach().mean())
    return value if math.isfinite(value) else None
