"""Order of contraction: p in res_out ~ C res_in^p near identical rows, one number that says how an architecture loses rank with depth.

p > 1: doubly exponential in depth; p = 1: exponential; p = 0: rows come out different however alike they went in. Measured twice, for
res (relative, Frobenius) and for sigma_2 / sigma_1, which does not mind rows that differ by a factor.

One block, many random draws of weights, of the common row x and of the direction of R; R is scaled over decades that no floating-point
number could hold after cubing, and passed on by centred propagation. p is the slope of log against log, fitted per draw; its uncertainty
joins the fit's standard error with the spread between draws. sigma_2 / sigma_1 follows from R to leading order,

    sigma_2 / sigma_1 = |R (I - x x^T / |x|^2)|_2 / (sqrt(T) |x|),

while rounding in R leaves something of what lies beside x. Where all rows become multiples of one vector, that is less and less of R, and
the fit is made on larger R, over fewer decades (`middle_ratio`). What neither can tell is read off singular values of the float64 output.
An architecture that cannot be built or measured has rows without an order, with the reason.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from rankfall import components
from rankfall.design import Architecture, Component
from rankfall.errors import RankfallError, told
from rankfall.nets.attentions.multihead import Multihead
from rankfall.nets.network import Network, Shape, build
from rankfall.rank.centred.attention import Unknown
from rankfall.rank.centred.block import step
from rankfall.rank.centred.scaled import spread
from rankfall.rank.centred.state import State, begin, scaled_to
from rankfall.rank.centred.tokenwise import norm
from rankfall.rank.order_fit import fit, nothing
from rankfall.rank.order_theory import expected
from rankfall.rank.residual import residual, sigma_ratio
from rankfall.rank.rounding import NOISE, UNITS, apart
from rankfall.streams import stream

TABLE = "orders"
NEEDS = "nothing"
LIMITS = {"heads": (1, None), "draws": (1, None), "tokens": (2, None), "width": (1, None)}
PARTS = {
    "attentions": "attention",
    "normalisers": "normaliser",
    "positions": "position",
    "masks": "mask",
    "sentinels": "sentinels",
}

FAR = np.linspace(-8.0, -40.0, 9)  # log10 of |R|: where only centred propagation goes
MIDDLE = np.linspace(-2.0, -12.0, 21)  # where what lies beside x may still be clear of rounding
ENOUGH = 7  # scales, three decades, at which it must be so for every draw
NEAR = np.linspace(-1.5, -7.0, 12)  # where plain float64 still resolves something
FLOOR = 1e-12  # singular values of a float64 output below this, relative to the first, are noise
FITTED = 7  # points of a fit near the floor: the smallest that are above it
BESIDE = 1e-4  # how much of R must lie beside x at all scales for the fit on the far ones
RESOLVED = 1e-13  # and on the middle ones: a thousand times the rounding of R

# One layer of attention and nothing else; every field whose default could change is named.
ALONE = Architecture(
    name="alone",
    block=Component("attention"),
    attention=Component("multihead"),
    position=Component("none"),
    mask=Component("none"),
    residual=Component("none"),
    mlp=Component("none"),
    norm=Component("none"),
    norm_placement="post",
    embedding=Component("linear"),
    head=Component("regression"),
    sentinels=Component("none"),
    init=Component("published"),
    depth=1,
    heads=2,
    width=8,
)
# What may stand around the attention. Norms are exact: an eps beside the variance is one more scale, which the slopes would show.
BLOCKS: dict[str, dict[str, Any]] = {
    "attention alone": {},
    "MLP": {"mlp": Component("gelu")},
    "post-norm": {"norm": Component("layer", {"eps": 0.0})},
    "pre-norm": {"norm": Component("layer", {"eps": 0.0}), "norm_placement": "pre"},
    "RMS norm": {"norm": Component("rms", {"eps": 0.0})},
    "column norm": {"norm": Component("column", {"eps": 0.0})},
    "skip": {"residual": Component("add")},
    "skip, post-norm": {"residual": Component("add"), "norm": Component("layer", {"eps": 0.0})},
    "skip, pre-norm": {"residual": Component("add"), "norm": Component("layer", {"eps": 0.0}), "norm_placement": "pre"},
    "transformer": {"residual": Component("add"), "norm": Component("layer", {"eps": 0.0}), "mlp": Component("gelu")},
}


@dataclass(frozen=True)
class Composition:
    """One entry of the table."""

    design: Architecture
    block: str
    biases: bool


def orders(
    *,
    attentions: list[str | dict] = ["multihead"],
    normalisers: list[str | dict] = [
        "softmax",
        "l2",
        "swish_l2",
        "exp",
        "sigmoid",
        "relu2",
        "softmax_off_by_one",
        "urpe",
    ],
    positions: list[str | dict] = ["none", "toeplitz", "symmetric", "rope"],
    masks: list[str | dict] = ["none", "causal"],
    sentinels: list[str | dict] = ["none", "bos"],
    blocks: list[
        Literal[
            "attention alone",
            "MLP",
            "post-norm",
            "pre-norm",
            "RMS norm",
            "column norm",
            "skip",
            "skip, post-norm",
            "skip, pre-norm",
            "transformer",
        ]
    ] = [],
    heads: list[int] = [1, 2],
    draws: int = 8,
    tokens: int = 6,
    width: int = 8,
) -> list[dict[str, Any]]:
    """Attention alone over attention x normaliser x position x mask x sentinels; every block (all, if none is named) over attentions
    and normalisers. What an attention does not read, such as a normaliser, is null."""
    for count in heads:
        if width % count:
            raise RankfallError(f"orders: {count} heads do not divide the width {width}")
    named = dict(zip(PARTS.values(), (attentions, normalisers, positions, masks, sentinels)))
    parts = {kind: [Component.of(item) for item in items] for kind, items in named.items()}
    for kind, found in parts.items():
        for component in found:
            components.load(kind, component.name)  # a file that cannot be imported is nobody's order
    rows = []
    for one in compositions(parts, list(blocks or BLOCKS), heads, width):
        rows += entry(one, draws, tokens)
    return rows


def compositions(
    parts: dict[str, list[Component]], blocks: list[str], heads: list[int], width: int
) -> Iterator[Composition]:
    for base in bases(parts["attention"], parts["normaliser"], heads, width):
        offers = fact(base.attention, "OFFERS")
        positions = [it for it in parts["position"] if offers is None or reached(it, offers)]
        for biases in (False, True):
            for position in positions:
                for mask in parts["mask"]:
                    for sentinel in parts["sentinels"]:
                        placed = replace(base, position=position, mask=mask, sentinels=sentinel)
                        yield Composition(placed, "attention alone", biases)
        for block in blocks:
            if block != "attention alone":
                yield Composition(replace(base, **BLOCKS[block]), block, True)


def bases(
    attentions: list[Component], normalisers: list[Component], heads: list[int], width: int
) -> Iterator[Architecture]:
    """An attention with each normaliser and number of heads, or with null where it does not read them."""
    for attention in attentions:
        ignored = fact(attention, "IGNORES") or ()
        alone = replace(ALONE, attention=attention, width=width)
        for normaliser in [None] if "normaliser" in ignored else normalisers:
            for count in [None] if "heads" in ignored else heads:
                read: dict[str, Any] = {"normaliser": normaliser, "heads": count}
                yield replace(alone, **read)


def fact(attention: Component, name: str) -> Any:
    found = components.describe("attention", attention.name)
    return found.facts.get(name) if found else None


def reached(position: Component, offers: Sequence[str]) -> bool:
    """Whether the attention has what the position acts on."""
    found = components.describe("position", position.name)
    return found is not None and set(found.facts.get("TOUCHES", ("queries", "scores"))) <= {"states", *offers}


def entry(one: Composition, draws: int, tokens: int) -> list[dict[str, Any]]:
    """The rows of one architecture: res and sigma_2 / sigma_1."""
    design = one.design
    about = {
        "attention": str(design.attention),
        "normaliser": None if design.normaliser is None else str(design.normaliser),
        "position": str(design.position),
        "mask": str(design.mask),
        "sentinels": str(design.sentinels),
        "block": one.block,
        "heads": design.heads,
        "biases": one.biases,
        "draws": draws,
    }
    if design.normaliser == Component("urpe"):
        # With all factors equal URPE is softmax; it means something once they differ.
        design = replace(design, normaliser=Component("urpe", {"random": True}))
    theory, why = expected(design)
    known = {"theory": None if theory is None else float(theory), "theory_reason": why}
    try:
        res, ratio = measured(design, one.biases, draws, tokens)
    except (MemoryError, torch.OutOfMemoryError):  # nothing that the architecture is to blame for
        raise
    except Exception as error:  # anything that a component may raise
        res = ratio = nothing("none", told(error))
    return [about | {"quantity": "res"} | res | known, about | {"quantity": "sigma_ratio"} | ratio]


def measured(design: Architecture, biases: bool, draws: int, tokens: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fits of res and of sigma_2 / sigma_1."""
    network = networks(design, tokens, draws, biases)
    state = start(network, draws, tokens)
    wake(network, state)
    block = network.blocks[0]
    try:
        far = step(block, at(state, FAR))
    except Unknown:
        return near_fit(block, state, relative), near_fit(block, state, sigma_ratio)
    res = fit(FAR, log10_res(far), "centred")
    ratio = far_ratio(far) or middle_ratio(step(block, at(state, MIDDLE)))
    return res, ratio or near_fit(block, state, sigma_ratio)


def networks(design: Architecture, tokens: int, draws: int, biases: bool) -> Network:
    """One network a draw, in float64; parameters of one name and shape are the same in every design."""
    made = build(design, Shape("vectors", "values", length=tokens, size_in=1, size_out=1), draws, torch.float64)
    made.init = drawing(biases)
    made.initialise(list(range(draws)))
    return made.requires_grad_(False)


def drawing(biases: bool) -> Any:
    """Weights that keep sizes of order one, positions and factors that are clearly there, biases or none."""

    def draw(rng: np.random.Generator, role: str, kind: str, shape: tuple[int, ...], fan_in: int) -> np.ndarray:
        if kind == "bias":
            return rng.normal(0.0, 0.5, shape) * biases
        if role == "position":
            return rng.uniform(-0.5, 0.5, shape)
        return rng.normal(0.0, 1.0 if role == "embedding" else fan_in**-0.5, shape)

    return draw


def start(network: Any, draws: int, tokens: int) -> State:
    """Each draw's x and direction of R, one sample (K, 1, ...)."""
    width = network.embedding.map.weight.shape[2]
    rngs = [stream(seed, "orders", tokens, width) for seed in range(draws)]
    content = torch.from_numpy(np.stack([rng.normal(size=(1, 1, width)) for rng in rngs]))
    content = content + torch.from_numpy(np.stack([rng.normal(size=(1, tokens, width)) for rng in rngs]))
    return begin(network, content if network.sentinels is None else network.sentinels.add(content))


def wake(network: Any, state: State) -> None:
    """Queries turned around, and made up to four times as long, where a token's score for its like is not clearly positive.

    With a negative score relu^2 looks at nothing, and such a draw says nothing about the others. The other normalisers have the same draws.
    """
    block = network.blocks[0]
    if not isinstance(block.attention, Multihead):
        return  # a gated unit's queries and keys are one vector at the start, linear attention's features are positive
    attention: Any = block.attention
    x = norm(block.norm1, state).common if block.placement == "pre" else state.common
    q, k = attention.split(attention.query(x)), attention.split(attention.key(x))  # (K, 1, H, 1, d)
    score = (q * k).sum(-1).view(len(x), -1) * attention.head_width**-0.5  # (K, H)
    factor = (score.sign() * (0.6 / score.abs()).clamp(1.0, 4.0)).repeat_interleave(attention.head_width, 1)  # (K, H*d)
    attention.query.weight *= factor.unsqueeze(1)
    attention.query.bias *= factor.unsqueeze(1)


def at(state: State, scales: np.ndarray) -> State:
    """The same state once for each scale of R: the scales take the place of samples."""
    many = len(scales)
    log = torch.from_numpy(scales * math.log(10))
    wide = replace(
        state,
        common=state.common.expand(-1, many, -1, -1),
        sentinels=state.sentinels.expand(-1, many, -1, -1),
        rest=replace(
            state.rest, unit=state.rest.unit.expand(-1, many, -1, -1), log=state.rest.log.expand(-1, many).clone()
        ),
    )
    return scaled_to(wide, log)


def log10_res(state: State) -> Tensor:
    """log10 of |R|_F / |X|_F (K, B); -inf where rows are identical to the last digit."""
    tokens = len(state.tokens)
    rest = state.rest.log + state.rest.unit.square().sum((2, 3)).sqrt().log()
    rest = torch.where(state.rest.log.isfinite(), rest, -torch.inf)
    common = 0.5 * math.log(tokens) + state.common.square().sum((2, 3)).sqrt().log()
    return (rest - 0.5 * torch.logaddexp(2 * rest, 2 * common)) / math.log(10)


def log10_beside(state: State) -> tuple[Tensor, Tensor]:
    """log10 of sigma_2 / sigma_1 to leading order (K, B), and the share of R that lies beside x (one where R is zero)."""
    length = state.common.norm(dim=-1, keepdim=True).clamp_min(1e-300)  # zero where all weights are
    x = state.common / length
    beside = state.rest.unit - (state.rest.unit * x).sum(-1, keepdim=True) * x
    size = torch.linalg.svdvals(beside)[..., 0]
    share = size / torch.linalg.svdvals(state.rest.unit)[..., 0].clamp_min(1e-300)
    there = state.rest.log.isfinite()
    log = state.rest.log + size.log() - (len(state.tokens) ** 0.5 * length[..., 0, 0]).log()
    return torch.where(there, log, -torch.inf) / math.log(10), torch.where(there, share, 1.0)


def far_ratio(state: State) -> dict[str, Any] | None:
    """The fit of sigma_2 / sigma_1 on scales that only centred propagation reaches; None where it does not show there."""
    res = log10_res(state)
    beside, share = log10_beside(state)
    if bool((res < -5).all()):
        return fit(FAR, beside, "centred") if bool((share > BESIDE).all()) else None
    ratio = sigma_ratio(state.full()[..., state.tokens, :])
    return fit(FAR, ratio.log10(), "centred") if bool((ratio > BESIDE**2).all()) else None


def middle_ratio(state: State) -> dict[str, Any] | None:
    """The same where rows are nearly multiples of one vector v, however much they differ in length: X = w v^T + B, with B beside v, and

    sigma_2 / sigma_1 = |(I - w w^T / |w|^2) B|_2 / |w|

    to leading order, from the scales at which B is small beside X and yet clear of the rounding in R.
    """
    size = state.common.norm(dim=-1, keepdim=True).clamp_min(1e-300)
    v = state.common / size  # (K, B, 1, D)
    rest = state.rest.unit * state.rest.log.exp()[..., None, None]  # no smaller here than ordinary numbers
    if not bool((rest.isfinite().all() & (size[..., 0, 0] > 1e-3 * rest.flatten(2).norm(dim=-1))).all()):
        return None  # such as after a norm over tokens, which leaves no common row to measure beside
    along = (rest * v).sum(-1, keepdim=True)  # (K, B, T, 1)
    w = size + along
    beside = rest - along * v
    length = w.norm(dim=-2, keepdim=True).clamp_min(1e-300)
    w = w / length
    beside = beside - w * (w * beside).sum(-2, keepdim=True)
    second = torch.linalg.svdvals(beside)[..., 0]
    ratio = second / length[..., 0, 0]
    # Where it is no small number, there is no leading order, and nothing that rounding could hide.
    ratio = torch.where(ratio < 0.01, ratio, sigma_ratio(state.full()[..., state.tokens, :]))
    clear = second > RESOLVED * rest.flatten(2).norm(dim=-1)  # (K, B)
    if int(clear.sum(1).min()) < ENOUGH:
        return None
    return fit(MIDDLE, torch.where(clear, ratio.log10(), -torch.inf), "centred")


def relative(x: Tensor) -> Tensor:
    rest = x - x.mean(-2, keepdim=True)
    return rest.norm(dim=(-2, -1)) / x.norm(dim=(-2, -1))


def near_fit(block: Any, state: State, measure: Any) -> dict[str, Any]:
    """The fit on ordinary float64 outputs: for each draw on the smallest scales whose value is still above the floor."""
    near = at(state, NEAR)
    try:
        output = step(block, near).full()[
            ..., state.tokens, :
        ]  # no worse than the plain pass, and better where x is small
        noise = torch.zeros(output.shape[:2], dtype=torch.bool)
    except Unknown:
        x = near.full()
        output, other = (
            block(given)[..., state.tokens, :] for given in (x, x * (1 + UNITS * torch.finfo(x.dtype).eps))
        )
        noise = apart(residual(output), residual(other), "frobenius") > NOISE
    finite = output.isfinite().all(-1).all(-1)  # (K, B); a norm over tokens without eps makes 0 / 0 of equal rows
    if not bool(finite.any()):
        return nothing("float64", "the output is not finite")
    values = torch.where(finite & ~noise, measure(torch.where(spread(finite, output), output, 0.0)), 0.0)  # (K, B)
    logs = torch.where(values > FLOOR, values.log10(), -torch.inf)
    return fit(NEAR, logs, "float64", last=FITTED)
