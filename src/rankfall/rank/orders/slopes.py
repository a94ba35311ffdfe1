"""Orders of contraction as slopes: log of res, or of sigma_2 / sigma_1, after one layer against log of |R| before it.

res is the relative Frobenius residual. The layer is a network with random weights. Its state X = 1 x^T + R has nearly identical rows, and
R is scaled over decades far below the smallest floating-point number. Centred propagation (`rank/centred/`) takes it through the layer
without loss of digits. To leading order

    sigma_2 / sigma_1 = |R (I - x x^T / |x|^2)|_2 / (sqrt(T) |x|).

The numerator is the part of R at right angles to x. Where all rows become multiples of one vector, this part is an ever smaller share of
R and is lost in the rounding of R; then the fit uses larger R over fewer decades (`middle_ratio`). Where that fails too, or where there
is no centred form, the fit uses plain float64 outputs (`near_fit`).

`fit` gives a slope for each draw of weights, and its spread over draws.
"""

import math
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankfall.design import Architecture
from rankfall.nets.attentions._heads import Heads
from rankfall.nets.network import Network, Shape, build
from rankfall.nets.primitives import Initial
from rankfall.random_streams import stream
from rankfall.rank.centred.assumptions import Unknown
from rankfall.rank.centred.attention import step
from rankfall.rank.centred.scaled import Scaled, State, begin, spread
from rankfall.rank.centred.tokenwise import norm
from rankfall.rank.powers import length, measurable, outside, unit
from rankfall.rank.residual import residual, sigma_ratio
from rankfall.rank.rounding import NOISE, UNITS, relative_difference


def networks(design: Architecture, tokens: int, draws: int, biases: bool, seed: int = 0) -> Network:
    """Build one network per draw, in float64. Parameters of equal name and shape are the same in every design."""
    network = build(design, Shape("vectors", "values", length=tokens, size_in=1, size_out=1), draws, torch.float64)
    for name, value in network.named_parameters():
        value.data.copy_(initial_values(name, value.initial, tuple(value.shape[1:]), seed, draws, biases))  # type: ignore[attr-defined]
    return network.requires_grad_(False)


@lru_cache(maxsize=1024)
def initial_values(name: str, start: Initial, shape: tuple[int, ...], seed: int, draws: int, biases: bool) -> Tensor:
    """Return a parameter's initial values (K, ...), which the designs of a table share.

    States keep sizes of order one and positions have a visible effect. `biases`: whether linear maps have them.
    """
    if start.kind == "constant":
        return torch.full((draws, *shape), start.constant, dtype=torch.float64)
    rngs = [stream(seed + draw, "init", name) for draw in range(draws)]
    if start.kind == "bias" and start.deviation is None:
        drawn = [rng.normal(0.0, 0.5, shape) * biases for rng in rngs]
    elif start.role == "position" and start.deviation is None:
        drawn = [rng.uniform(-0.5, 0.5, shape) for rng in rngs]
    else:
        usual = 1.0 if start.role == "embedding" else start.fan_in**-0.5
        drawn = [rng.normal(0.0, usual if start.deviation is None else start.deviation, shape) for rng in rngs]
    return torch.from_numpy(np.stack(drawn))


def start(network: Any, draws: int, tokens: int, seed: int = 0) -> State:
    """Draw x and the direction of R for each draw, one sample (K, 1, ...)."""
    width = network.embedding.map.weight.shape[2]
    rngs = [stream(seed + draw, "orders", tokens, width) for draw in range(draws)]
    content = torch.from_numpy(np.stack([rng.normal(size=(1, 1, width)) for rng in rngs]))
    content = content + torch.from_numpy(np.stack([rng.normal(size=(1, tokens, width)) for rng in rngs]))
    return begin(network, content if network.sentinels is None else network.sentinels.add(content))


def wake(network: Any, state: State) -> None:
    """Scale queries by up to four, and flip their signs, until the score of the common row with itself is at least 0.6.

    Where scores are negative, relu^2 gives weights of zero, and nothing could be measured. All normalisers get the same queries.
    """
    block = network.blocks[0]
    if not isinstance(block.attention, Heads):
        return  # not needed: queries and keys of a gated unit start equal, features of linear attention are positive
    attention: Any = block.attention
    x = norm(block.norm1, state).common if block.placement == "pre" else state.common
    q, k = attention.split(attention.query(x)), attention.split(attention.key(x))  # (K, 1, H, 1, d)
    score = (q * k).sum(-1).view(len(x), -1) * attention.head_width**-0.5  # (K, H)
    factor = (score.sign() * (0.6 / score.abs()).clamp(1.0, 4.0)).repeat_interleave(attention.head_width, 1)  # (K, H*d)
    attention.query.weight *= factor.unsqueeze(1)
    attention.query.bias *= factor.unsqueeze(1)


def at_scales(state: State, scales: np.ndarray) -> State:
    """Repeat the state for each scale of R; scales take the place of samples."""
    log = torch.from_numpy(scales * math.log(10)).expand(len(state.common), -1)
    common, sentinels, unit = (
        x.expand(-1, len(scales), -1, -1) for x in (state.common, state.sentinels, state.rest.unit)
    )
    return replace(state, common=common, sentinels=sentinels, rest=Scaled(unit, log))


SHARP = 0.05  # an order with a larger uncertainty is not reported


def fit(scales: np.ndarray, logs: Tensor, method: str, last: int | None = None) -> dict[str, Any]:
    """Fit slopes of `logs` (K, B) over `scales` (B,), for each draw, and combine them over draws.

    `last`: number of points used, the last ones.
    """
    slopes, errors, starts, decades, identical = [], [], [], [], 0
    for line in logs.numpy():
        kept = np.flatnonzero(np.isfinite(line))[-last:] if last else np.flatnonzero(np.isfinite(line))
        if not len(kept):
            identical += 1
            continue
        if len(kept) < 3:
            continue
        x, y = scales[kept], line[kept]
        centred = x - x.mean()
        slope = float(centred @ y / (centred @ centred))
        remainder = y - y.mean() - slope * centred
        slopes.append(slope)
        errors.append(math.sqrt(float(remainder @ remainder) / (len(x) - 2) / float(centred @ centred)))
        starts.append(float(y.mean() - slope * x.mean()))
        decades.append(float(x.max() - x.min()))
    if not slopes:
        reason = "rows come out identical to the last digit" if identical else "nothing above rounding"
        return leave_order_empty(method, reason, identical)
    scatter = float(np.std(slopes, ddof=1)) if len(slopes) > 1 else 0.0
    order, uncertainty = float(np.mean(slopes)), math.hypot(scatter, float(np.sqrt(np.mean(np.square(errors)))))
    if uncertainty > SHARP:
        counts = sorted(Counter(round(slope) for slope in slopes).items())
        reason = "depends on the draw: " + (
            ", ".join(f"{p} in {count}" for p, count in counts)
            if len(counts) > 1
            else f"{min(slopes):.2f} to {max(slopes):.2f} in {len(slopes)}"
        )
        return leave_order_empty(method, reason, identical) | {"uncertainty": uncertainty}
    return {
        "method": method,
        "identical_draws": identical,
        "order": order,
        "uncertainty": uncertainty,
        "decades": float(np.min(decades)),
        "log10_constant": float(np.median(starts)),
        "reason": "does not contract: rows come out different however similar they went in" if order < 0.5 else "",
    }


def leave_order_empty(method: str, reason: str, identical: int = 0) -> dict[str, Any]:
    """Return a result without an order, with the reason."""
    empty = dict.fromkeys(("order", "uncertainty", "decades", "log10_constant"))
    return {"method": method, "identical_draws": identical, "reason": reason} | empty


FAR = np.linspace(-8.0, -40.0, 9)  # log10 of |R|, for centred propagation
MIDDLE = np.linspace(-2.0, -12.0, 21)  # log10 of |R|, for `middle_ratio`
ENOUGH = 7  # scales of MIDDLE (three decades) that every draw must have above rounding
NEAR = np.linspace(-1.5, -7.0, 12)  # log10 of |R|, for plain float64 outputs
FLOOR = 1e-12  # singular values of a float64 output below this, relative to the first, are rounding
FITTED = 7  # points of a fit on NEAR: the smallest above the floor
BESIDE = 1e-4  # the share of R that must be at right angles to x at all scales of FAR
RESOLVED = 1e-13  # the same share for MIDDLE: a thousand times the rounding of R


def measure_slopes(
    design: Architecture, biases: bool, draws: int, tokens: int, seed: int = 0
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fits of res and of sigma_2 / sigma_1. The draws have the seeds from `seed` on."""
    network = networks(design, tokens, draws, biases, seed)
    state = start(network, draws, tokens, seed)
    wake(network, state)
    block = network.blocks[0]
    try:
        far = step(block, at_scales(state, FAR))
    except Unknown:
        return near_fit(block, state, relative), near_fit(block, state, sigma_ratio)
    res = fit(FAR, log10_res(far), "centred")
    ratio = far_ratio(far) or middle_ratio(step(block, at_scales(state, MIDDLE)))
    return res, ratio or near_fit(block, state, sigma_ratio)


def log10_res(state: State) -> Tensor:
    """Return log10 of |R|_F / |X|_F (K, B); -inf where rows are identical to the last digit."""
    tokens = len(state.tokens)
    rest = state.rest.log + state.rest.unit.square().sum((2, 3)).sqrt().log()
    rest = torch.where(state.rest.log.isfinite(), rest, -torch.inf)
    common = 0.5 * math.log(tokens) + length(state.common, (2, 3)).log()
    return (rest - 0.5 * torch.logaddexp(2 * rest, 2 * common)) / math.log(10)


def log10_second_ratio(state: State) -> tuple[Tensor, Tensor]:
    """Return log10 of sigma_2 / sigma_1 to leading order (K, B), and the share of R at right angles to x (1 where R is zero)."""
    size = length(state.common).unsqueeze(-1).clamp_min(1e-300)  # zero if all weights are zero
    x = state.common / size
    beside = state.rest.unit - (state.rest.unit * x).sum(-1, keepdim=True) * x
    second = torch.linalg.svdvals(beside)[..., 0]
    share = second / torch.linalg.svdvals(state.rest.unit)[..., 0].clamp_min(1e-300)
    finite = state.rest.log.isfinite()
    log = state.rest.log + second.log() - (len(state.tokens) ** 0.5 * size[..., 0, 0]).log()
    return torch.where(finite, log, -torch.inf) / math.log(10), torch.where(finite, share, 1.0)


def far_ratio(state: State) -> dict[str, Any] | None:
    """Fit sigma_2 / sigma_1 on the scales of FAR; None where rounding hides it there."""
    res = log10_res(state)
    beside, share = log10_second_ratio(state)
    if bool((res < -5).all()):
        return fit(FAR, beside, "centred") if bool((share > BESIDE).all()) else None
    ratio = sigma_ratio(state.full()[..., state.tokens, :])
    return fit(FAR, ratio.log10(), "centred") if bool((ratio > BESIDE**2).all()) else None


def middle_ratio(state: State) -> dict[str, Any] | None:
    """Fit sigma_2 / sigma_1 where rows are nearly multiples of one vector v, of any lengths; None where rounding hides it.

    X = w v^T + B, with B at right angles to v, and

        sigma_2 / sigma_1 = |(I - w w^T / |w|^2) B|_2 / |w|

    to leading order, from the scales at which B is small compared with X and large compared with the rounding of R.
    """
    size = length(state.common).unsqueeze(-1).clamp_min(1e-300)
    v = state.common / size  # (K, B, 1, D)
    rest = state.rest.unit * state.rest.log.exp()[..., None, None]  # float64 can hold R at these scales
    if not bool((rest.isfinite().all() & (size[..., 0, 0] > 1e-3 * length(rest, (2, 3)))).all()):
        return None  # for example after a norm over tokens, which removes the common row
    along = (rest * v).sum(-1, keepdim=True)  # (K, B, T, 1)
    w = size + along
    beside = rest - along * v
    longest = length(w, -2).unsqueeze(-2).clamp_min(1e-300)
    w = w / longest
    beside = beside - w * (w * beside).sum(-2, keepdim=True)
    second = torch.linalg.svdvals(beside)[..., 0]
    ratio = second / longest[..., 0, 0]
    # Where the ratio is not small, the leading order does not hold, and rounding hides nothing.
    ratio = torch.where(ratio < 0.01, ratio, sigma_ratio(state.full()[..., state.tokens, :]))
    clear = second > RESOLVED * length(rest, (2, 3))  # (K, B)
    if int(clear.sum(1).min()) < ENOUGH:
        return None
    return fit(MIDDLE, torch.where(clear, ratio.log10(), -torch.inf), "centred")


def relative(x: Tensor) -> Tensor:
    """Return |R|_F / |X|_F (...), about the token mean; NaN where X has no size."""
    x = unit(torch.where(measurable(x)[..., None, None], x, 0.0))
    rest = x - x.mean(-2, keepdim=True)
    return rest.norm(dim=(-2, -1)) / x.norm(dim=(-2, -1))


def near_fit(block: Any, state: State, measure: Any) -> dict[str, Any]:
    """Fit ordinary float64 outputs, for each draw on the smallest scales whose value is above the floor."""
    near = at_scales(state, NEAR)
    try:
        output = step(block, near).full()[..., state.tokens, :]  # at least as exact as the plain pass
        noise = torch.zeros(output.shape[:2], dtype=torch.bool)
    except Unknown:
        x = near.full()
        output, other = (block(y)[..., state.tokens, :] for y in (x, x * (1 + UNITS * torch.finfo(x.dtype).eps)))
        noise = relative_difference(residual(output), residual(other), "frobenius") > NOISE
    finite = output.isfinite().all(-1).all(-1)  # (K, B); a norm over tokens without eps gives 0 / 0 for equal rows
    if not bool(finite.any()):
        return leave_order_empty("float64", "the output is not finite")
    if not bool(measurable(output).any()):
        return leave_order_empty("float64", outside(output.dtype))
    values = torch.where(finite & ~noise, measure(torch.where(spread(finite, output), output, 0.0)), 0.0)  # (K, B)
    logs = torch.where(values > FLOOR, values.log10(), -torch.inf)
    return fit(NEAR, logs, "float64", last=FITTED)
