"""The statistics of states and of attention weights, reduced in the step by a few passes over a few samples, on the device of the model.

Nothing here reads a value back, so that nothing waits. States are measured in float32 (float64 where the model is), attention in the
float32 of what the model computes. The effective rank needs small eigenvalues of the Gram matrix in float64: these are computed later, in
a thread (`effective_ranks`). A value that is not defined is NaN.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rankfall.rank.powers import exponent_of, least, power, shift
from rankfall.rank.residual import floor_of, share

STATES = ("tokens", "residual", "floor", "norm", "participation_ratio", "broken")
WEIGHTS = ("entropy", "largest_share", "first_share", "largest_logit", "causal")
# Limits of what is measured, so that a logged step stays fast and needs little memory.
MOST_NUMBERS = 2**22  # numbers of states in one pass; larger states are measured a few samples at a time
MOST_TOKENS = 512  # tokens of a sample in its Gram matrix
WORK = 8 * 256**3  # operations for the Gram matrices of a layer: samples x size^3
MOST_WEIGHTS = 2**16  # attention weights of a layer
QUERIES = (16, 256)  # fewest and most queries of a sample


def state_values(states: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the values (len(STATES), S) of states (S, T, D), and the states (S', T', D) of which `effective_ranks` are computed.

    `real` (S, T) is True at tokens. The value `floor` is 1 where the residual is rounding noise, `broken` where a state is not finite.
    """
    chunk = max(1, MOST_NUMBERS // max(states[0].numel(), 1))
    # An effective rank takes a time that grows with the third power of the smaller of tokens and width.
    ranked = min(len(states), max(1, int(WORK / max(min(*states.shape[1:], MOST_TOKENS), 1) ** 3)))
    parts = [
        state_part(x, None if real is None else real[at : at + chunk], ranked - at)
        for at, x in zip(range(0, len(states), chunk), states.split(chunk))
    ]
    return torch.cat([values for values, _ in parts], -1), torch.cat([kept for _, kept in parts])


def state_part(states: Tensor, real: Tensor | None, ranked: int) -> tuple[Tensor, Tensor]:
    """Return the values of a few samples (S, T, D), NaN where not defined, and the scaled states of the first `ranked` samples."""
    x = states.to(torch.float64 if states.dtype == torch.float64 and states.device.type != "mps" else torch.float32)
    mask = None if real is None else real[..., None].to(x.dtype)
    count = x.new_full((len(x),), x.shape[1])
    if real is not None:
        count, x = real.sum(-1).to(x.dtype), torch.where(real[..., None], x, 0.0)
    largest = x.abs().amax((-2, -1))  # (S,)
    exponent = exponent_of(largest, ())
    scale = power(-exponent.clamp(-126, 126), x.dtype)[:, None, None]  # sums neither overflow nor vanish
    x = x * scale
    whole = composite_norm(x.abs())
    first = x[:, :1] if real is None else x.take_along_dim(real.int().argmax(-1)[:, None, None], 1)  # (S, 1, D)
    centred = x - first  # about a token, so that equal tokens leave exactly 0
    centred = centred if mask is None else centred.mul_(mask)
    centred.sub_((centred.sum(1) / count[:, None])[:, None])
    centred = centred if mask is None else centred.mul_(mask)
    finite = largest.isfinite()
    known = finite & (largest >= least(states.dtype))
    residual = torch.where(known & (count > 1), share(composite_norm(centred.abs_()), whole), torch.nan)
    length = torch.linalg.vector_norm(x, dim=(-2, -1)) / count.sqrt()
    kept = x[: max(ranked, 0)]
    if min(kept.shape[1:]) > MOST_TOKENS:
        kept = kept[:, evenly_spaced(kept.shape[1], MOST_TOKENS, kept.device)]
    gram = gram_matrices(kept)
    ratio = torch.full_like(residual, torch.nan)
    ratio[: len(gram)] = gram.diagonal(dim1=-2, dim2=-1).sum(-1).square() / gram.square().sum((-2, -1))
    values = (
        count,
        residual,
        torch.where(residual.isnan(), torch.nan, (residual < floor_of(states.dtype)).to(residual.dtype)),
        torch.where(finite & (count > 0), shift(length.to(wide_dtype(x)), exponent), torch.nan),
        torch.where(known & (count > 1), ratio, torch.nan),
        ~finite,
    )
    return torch.stack([value.to(wide_dtype(x)) for value in values]), kept


def broken_samples(states: Tensor, real: Tensor | None) -> Tensor:
    """Return 1 for each sample (B,) of states (B, T, D) with a token that is not finite. `real` (B, T) is True at tokens."""
    low, high = torch.aminmax(states, dim=-1)  # (B, T), NaN where a number is
    broken = ~(low.isfinite() & high.isfinite())
    return (broken if real is None else broken & real).any(-1).to(wide_dtype(states))


def composite_norm(size: Tensor) -> Tensor:
    """Return sqrt(largest column sum x largest row sum) of absolute values (S, T, D)."""
    return size.sum(-2).amax(-1).sqrt() * size.sum(-1).amax(-1).sqrt()


def gram_matrices(x: Tensor) -> Tensor:
    """Return Gram matrices (S, n, n) of (S, T, D), n the smaller of T and D."""
    return x @ x.mT if x.shape[1] <= x.shape[2] else x.mT @ x


def effective_ranks(states: Tensor) -> Tensor:
    """Return the effective ranks (S,) of states (S, T, D), NaN where not defined. Products are computed on the device."""
    gram = gram_matrices(states.to(wide_dtype(states))).cpu()
    known = gram.isfinite().all(-1).all(-1)
    values = torch.linalg.eigvalsh(torch.where(known[:, None, None], gram, 0.0))  # (S, n), ascending
    smallest = torch.finfo(gram.dtype).eps * max(states.shape[1:]) * values[..., -1:]
    sizes = torch.where(values > smallest, values, 0.0).sqrt()
    shares = sizes / sizes.sum(-1, keepdim=True)
    return torch.where(known, torch.special.entr(shares).sum(-1).exp(), torch.nan)


def weight_values(weights: Tensor, rows: Tensor, real: Tensor | None, scores: Tensor, causal: bool = False) -> Tensor:
    """Return the values (len(WEIGHTS), S, H) of attention weights (S, H, R, T), the softmax of `scores` (S, H, R, T).

    `rows` (R,) are the queries, out of T; `real` (S, T) is True at tokens. Under a causal mask the first query, which sees itself alone,
    is left out of `entropy` and `largest_share`. The value `causal` is 1 if no token attends to a later one. The argument `causal`
    states this, so that the weights need not be searched.
    """
    weights, scores = (x if x.dtype == torch.float64 else x.float() for x in (weights, scores))
    tokens = weights.shape[-1]
    queries = (
        torch.ones(len(weights), len(rows), dtype=torch.bool, device=weights.device) if real is None else real[:, rows]
    )
    later = (torch.arange(tokens, device=weights.device) > rows[:, None])[None]  # (1, R, T)
    if real is None:
        others, first_weight = queries & (rows != 0), weights[..., 0]
    else:
        later = later & real[:, None] & queries[..., None]  # (S, R, T)
        first = real.int().argmax(-1)[:, None]  # (S, 1): padding may be on the left
        others = queries & (rows != first)
        first_weight = weights.gather(-1, first[..., None, None].expand(*weights.shape[:-1], 1)).squeeze(-1)
    has_later = later.flatten(1).any(1)  # (S,) or (1,)
    ahead = has_later & False if causal else torch.where(later[:, None], weights, 0.0).amax((1, 2, 3)) != 0
    one_way = (has_later & ~ahead).expand(len(weights))  # (S,)
    seeing = torch.where(one_way[:, None], others, queries)
    largest, logit = weights.amax(-1), scores.amax(-1)  # (S, H, R)
    # -log of the largest weight plus the mean distance of scores from the largest: the entropy, with one logarithm a row
    distance = (logit[..., None] - scores).clamp_max_(torch.finfo(scores.dtype).max).mul_(weights).sum(-1)
    entropy = torch.where(logit > torch.finfo(scores.dtype).min, (distance - largest.log()).clamp_min(0.0), 0.0)
    return torch.stack([
        mean_of_queries(torch.where(largest.isnan(), torch.nan, entropy), seeing),
        mean_of_queries(largest, seeing),
        mean_of_queries(first_weight, others),
        torch.where(queries[:, None], logit, -torch.inf).amax(-1),
        one_way[:, None].expand(logit.shape[:2]).to(weights.dtype),
    ])  # fmt: skip


def mean_of_queries(values: Tensor, queries: Tensor) -> Tensor:
    """Average (S, H, R) to (S, H) over the queries (S, R) that are True. NaN if there are none or a value is not finite."""
    return torch.where(queries[:, None], values, 0.0).sum(-1) / queries.sum(-1)[:, None]


def chosen_queries(samples: int, heads: int, tokens: int, device: torch.device) -> Tensor:
    """Return the queries (R,) whose attention weights are measured, evenly spaced, so that a layer has at most `MOST_WEIGHTS`."""
    fewest, most = QUERIES
    return evenly_spaced(tokens, min(most, max(fewest, MOST_WEIGHTS // max(samples * heads * tokens, 1))), device)


def evenly_spaced(count: int, most: int, device: torch.device) -> Tensor:
    """Return at most `most` indices below `count`, evenly spaced, with the first and the last."""
    if count <= most:
        return torch.arange(count, device=device)
    return torch.linspace(0, count - 1, most, device=device, dtype=torch.float32).round().long()


def wide_dtype(x: Tensor) -> torch.dtype:
    """Return float64, or float32 on devices without it."""
    return torch.float32 if x.device.type == "mps" else torch.float64
