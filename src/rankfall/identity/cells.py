"""Views of the attention layers of a cell's network. The attention must provide `weights`, `heads` and `values`."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rankfall.identity.views import KINDS, AttentionView, JoinView, NormView
from rankfall.nets.blocks.attention import Attention as Block
from rankfall.nets.network import Network
from rankfall.nets.norms.column import ColumnNorm
from rankfall.nets.norms.layer import Layer
from rankfall.nets.norms.none import none as no_norm
from rankfall.nets.norms.rms import Rms
from rankfall.nets.primitives import asks

FIRST, SEPARATOR, OTHER = KINDS.index("first"), KINDS.index("separator"), KINDS.index("other")


@torch.no_grad()
def cell_views(network: Network, inputs: Tensor, special: int = 0) -> Iterator[AttentionView]:
    """Yield the view of each layer in turn, for one network in float64 and inputs (1, B, T) or (1, B, T, C).

    Symbols below `special` are separators.
    """
    start = network.lift(inputs)  # (1, B, T', D)
    ids = _ids(network, inputs, start.shape[2])
    for layer, (block, x) in enumerate(zip(network.blocks, network.layers(start)), 1):
        attention = block.attention
        read = x if block.placement == "post" else block.norm1(x)
        weights = attention.weights(read)  # (1, B, H, T', T')
        identity = torch.eye(x.shape[2], dtype=x.dtype, device=x.device).expand_as(weights)
        values = attention.contexts(identity, read)  # (1, B, H, T', d)
        output = attention.output.weight.detach()[0].unflatten(0, (attention.heads, -1))  # (H, d, D)
        bias = attention.output.bias  # (1, 1, D)
        yield AttentionView(
            layer=layer,
            inputs=read[0],
            weights=weights[0],
            values=values[0],
            output=output,
            bias=x.new_zeros(x.shape[-1]) if bias is None else bias.detach()[0, 0],
            score_width=attention.head_width,
            allowed=_find_mask(attention, weights),
            join=_join(block, x, attention(read)),
            kinds=_kinds(ids, x, special),
            ids=ids,
        )


def _find_mask(attention: Any, weights: Tensor) -> Tensor:
    """Return the mask (T, T); for an attention without `mask`, the entries that are nonzero in some sample and head."""
    if not hasattr(attention, "mask"):
        return (weights != 0).flatten(0, 2).any(0)
    tokens = weights.shape[-1]
    mask = attention.mask(tokens, weights.device)
    return torch.ones(tokens, tokens, dtype=torch.bool, device=weights.device) if mask is None else mask


def _join(block: Any, x: Tensor, attended: Tensor) -> JoinView | str:
    """Return the residual as a x + b y with numbers a and b, and the norm written out.

    If a custom component has no such form, return the reason.
    """
    if type(block).forward is not Block.forward or asks(block.residual):
        return "the block does more than add attention to its state"
    ones, zeros = torch.ones_like(x), torch.zeros_like(x)
    a, b = block.residual(ones, zeros).flatten()[0], block.residual(zeros, ones).flatten()[0]
    total = block.residual(x, attended)
    if not torch.allclose(a * x + b * attended, total, rtol=1e-10, atol=1e-12):
        return "the residual is not a weighted sum of state and attention"
    norm = _norm(block.norm1) if block.placement == "post" else None
    if isinstance(norm, str):
        return norm
    return JoinView(None if a == 0 else a * x[0], float(b), norm)


def _norm(norm: Any) -> NormView | str | None:
    if (isinstance(norm, partial) and norm.func is no_norm) or norm is no_norm:
        return None
    if not isinstance(norm, (Layer, Rms, ColumnNorm)):
        return f"the form of the norm {type(norm).__name__} is not known"
    gain = norm.gain[0].detach()  # (1, 1, D)
    bias = torch.zeros_like(gain) if isinstance(norm, Rms) else norm.bias[0].detach()
    over = -2 if isinstance(norm, ColumnNorm) else -1
    return NormView(gain, bias, norm.eps, centred=not isinstance(norm, Rms), over=over)


def _ids(network: Network, inputs: Tensor, tokens: int) -> Tensor | None:
    """Return the ids of the tokens (B, T'), -1 for sentinels; None where inputs are vectors."""
    if inputs.is_floating_point():
        return None
    if network.sentinels is None or tokens == inputs.shape[2]:
        return inputs[0]
    numbered = torch.arange(tokens, device=inputs.device, dtype=torch.float64).view(1, 1, -1, 1)
    kept = network.sentinels.strip(numbered).flatten().long()  # where the tokens of the input are
    symbols = inputs.new_full((inputs.shape[1], tokens), -1)
    symbols[:, kept] = inputs[0]
    return symbols


def _kinds(ids: Tensor | None, x: Tensor, special: int) -> Tensor:
    kinds = torch.full(x.shape[1:3], OTHER, device=x.device)
    if ids is not None:
        kinds[ids < special] = SEPARATOR
    kinds[:, 0] = FIRST
    return kinds
