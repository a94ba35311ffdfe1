"""The numbers of states and of attention weights, without padding: one per sample, in float64."""

from __future__ import annotations

import torch
from torch import Tensor

from rankfall.rank.powers import measurable, or_nan
from rankfall.rank.residual import relative_residual
from rankfall.rank.spectrum import effective_rank

MOST_NUMBERS = 2**22  # float64 numbers at a time
MOST_TOKENS = 512  # tokens of a sample, for its effective rank
WORK = 8 * 256**3  # limit for the effective ranks of a layer
ROWS = 256  # rows of attention weights that are measured, evenly spaced


def state_numbers(states: Tensor, real: Tensor | None) -> dict[str, Tensor]:
    """Return the numbers (S,) of states (S, T, D). `real` (S, T) is True at tokens. NaN: not defined (one token, zeros, overflow)."""
    if real is not None and not bool(real.all()):
        alone = [residual_and_norm(x[here][None]) for x, here in zip(states, real)]
        found = {name: torch.cat([one[name] for one in alone]) for name in alone[0]}
    else:
        found = residual_and_norm(states)
    return found | {"effective_rank": ranks(states, real)}


def residual_and_norm(states: Tensor) -> dict[str, Tensor]:
    """Return residual and norm (S,) of states (S, T, D) without padding. Large states are processed a few samples at a time."""
    few = max(1, MOST_NUMBERS // max(states[0].numel(), 1))
    if len(states) > few:
        parts = [residual_and_norm(part) for part in states.split(few)]
        return {name: torch.cat([one[name] for one in parts]) for name in parts[0]}
    x = states.to(choose_dtype(states))
    none = x.new_full((len(x),), torch.nan)
    if x.shape[1] == 0:
        return {"residual": none, "norm": none}
    known = measurable(x, states.dtype)
    return {
        "residual": torch.where(known, relative_residual(x, computed=states.dtype), none) if x.shape[1] > 1 else none,
        "norm": torch.where(x.isfinite().all((-2, -1)), torch.linalg.vector_norm(x, dim=-1).mean(-1), none),
    }


def ranks(states: Tensor, real: Tensor | None) -> Tensor:
    """Return effective ranks (S,), NaN for samples that are left out.

    Time grows with the third power of the smaller of tokens and width, so large states use fewer samples and `MOST_TOKENS` of their tokens.
    """
    found = torch.full((len(states),), torch.nan, dtype=choose_dtype(states), device=states.device)
    size = min(*states.shape[1:], MOST_TOKENS)
    count = min(len(states), max(1, int(WORK / size**3)))
    whole = real is None or bool(real[:count].all())  # on a GPU one batch takes half the time of single samples
    parts = [states[:count]] if whole else [x[here][None] for x, here in zip(states[:count], real)]  # type: ignore[arg-type]
    at = 0
    for x in parts:  # (S', T, D)
        if min(x.shape[1:]) > MOST_TOKENS:
            x = x[:, space_rows(x.shape[1], x.device, MOST_TOKENS)]
        x = x.to(choose_dtype(x))
        if x.shape[1] > 1:
            found[at : at + len(x)] = or_nan(effective_rank(x), x, states.dtype)
        at += len(x)
    return found


def weight_numbers(weights: Tensor, rows: Tensor, real: Tensor | None) -> dict[str, Tensor]:
    """Return the numbers (S,) of weights (S, H, R, T), for the queries `rows` (R,) out of T. `real` (S, T) is True at tokens.

    `causal` is 1 if no token attends to a later one.
    """
    weights = weights.to(choose_dtype(weights))
    tokens = weights.shape[-1]
    here = torch.ones(len(weights), tokens, dtype=torch.bool, device=weights.device) if real is None else real
    place = torch.arange(tokens, device=weights.device)
    first = here.int().argmax(-1)  # (S,): padding may be on the left
    queries = here[:, rows]  # (S, R)
    later = (place > rows[:, None]) & here[:, None] & queries[..., None]  # (S, R, T)
    causal = ~((weights != 0) & later[:, None]).flatten(1).any(1) & later.flatten(1).any(1)  # (S,)
    others = queries & (rows != first[:, None])
    entropy = -torch.xlogy(weights, weights).sum(-1)  # (S, H, R)
    seeing = torch.where(causal[:, None], others, queries)
    first_weight = weights.gather(-1, first[:, None, None, None].expand(*weights.shape[:-1], 1)).squeeze(-1)
    return {
        "entropy": row_mean(entropy, seeing),
        "largest_share": row_mean(weights.amax(-1), seeing),
        "first_share": row_mean(first_weight, others),
        "causal": causal.double(),
    }


def row_mean(values: Tensor, rows: Tensor) -> Tensor:
    """Average (S, H, R) to (S,), over heads and the selected rows (S, R). NaN if there are none or a value is not finite."""
    kept = torch.where(rows[:, None], values, 0.0).sum((1, 2))
    return kept / (rows.sum(-1) * values.shape[1])


def select_rows(heads: int, tokens: int, device: torch.device) -> Tensor:
    """Return the rows of attention weights (H, T, T) that are measured."""
    return space_rows(tokens, device, min(ROWS, max(16, MOST_NUMBERS // (heads * tokens))))


def samples_at_once(heads: int, rows: int, tokens: int) -> int:
    """Return the number of samples whose weights are measured together. On a GPU several samples take as long as one."""
    return max(1, MOST_NUMBERS // max(heads * rows * tokens, 1))


def space_rows(tokens: int, device: torch.device, most: int) -> Tensor:
    if tokens <= most:
        return torch.arange(tokens, device=device)
    return torch.linspace(0, tokens - 1, most, device=device, dtype=torch.float64).round().long()


def choose_dtype(x: Tensor) -> torch.dtype:
    """Return float64, or float32 on devices without it."""
    return torch.float32 if x.device.type == "mps" else torch.float64
