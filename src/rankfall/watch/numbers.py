"""The numbers of states and of attention weights, without padding: for each sample one, in float64."""

from __future__ import annotations

import torch
from torch import Tensor

from rankfall.rank.effective_rank import effective_rank
from rankfall.rank.powers import measurable
from rankfall.rank.residual import relative_residual

ROWS = 256  # rows of attention weights that are looked at, evenly spaced


def state_numbers(states: Tensor, real: Tensor | None) -> dict[str, Tensor]:
    """Each (S,) of states (S, T, D); `real` (S, T): which are tokens. NaN where there is no number: one token, zeros, overflow."""
    if real is not None and not bool(real.all()):
        alone = [state_numbers(x[here][None], None) for x, here in zip(states, real)]
        return {name: torch.cat([one[name] for one in alone]) for name in alone[0]}
    computed = states.dtype
    x = states.to(precise(states))
    none = x.new_full((len(x),), torch.nan)
    if x.shape[1] == 0:
        return dict.fromkeys(("residual", "norm", "effective_rank"), none)
    known = measurable(x, computed) & (x.shape[1] > 1)
    return {
        "residual": torch.where(known, relative_residual(x, computed=computed), none) if x.shape[1] > 1 else none,
        "norm": torch.where(x.isfinite().all((-2, -1)), torch.linalg.vector_norm(x, dim=-1).mean(-1), none),
        "effective_rank": torch.where(known, effective_rank(torch.where(known[:, None, None], x, 0.0)), none),
    }


def weight_numbers(weights: Tensor, rows: Tensor, real: Tensor | None) -> dict[str, Tensor]:
    """Each (S,) of weights (S, H, R, T), those of the queries `rows` (R,) of T; `real` (S, T). `causal` is 1 where no token sees a
    later one."""
    weights = weights.to(precise(weights))
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
    """(S, H, R) -> (S,), over heads and the rows (S, R) that are meant; NaN where none is, or where a value is not finite."""
    kept = torch.where(rows[:, None], values, 0.0).sum((1, 2))
    return kept / (rows.sum(-1) * values.shape[1])


def spaced_rows(tokens: int, device: torch.device, most: int = ROWS) -> Tensor:
    if tokens <= most:
        return torch.arange(tokens, device=device)
    return torch.linspace(0, tokens - 1, most, device=device, dtype=torch.float64).round().long()


def precise(x: Tensor) -> torch.dtype:
    """float64, where the device has it."""
    return torch.float32 if x.device.type == "mps" else torch.float64
