"""Which tokens of a batch are padding, from what the model is called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError

REAL = ("attention_mask", "padding_mask", "decoder_attention_mask", "input_mask")  # 1 or True: a token
PADDED = ("src_key_padding_mask", "tgt_key_padding_mask", "key_padding_mask")  # True or -inf: padding
MaskFunction = Callable[..., Tensor | None]


def given_mask(module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor | None:
    """Real tokens (B, T) as the arguments of a call say, None if they say nothing that is understood."""
    named = bound(module, args, kwargs)
    for name in ("decoder_attention_mask", *REAL):  # a decoder's own before that of its encoder
        mask = named.get(name)
        if isinstance(mask, Tensor) and mask.ndim == 2 and not mask.is_floating_point():
            return mask.detach() != 0
        if isinstance(mask, Tensor) and mask.ndim == 2 and bool(((mask == 0) | (mask == 1)).all()):
            return mask.detach() == 1
    for name in PADDED:
        mask = named.get(name)
        if isinstance(mask, Tensor) and mask.ndim == 2:
            return ~mask.detach() if mask.dtype == torch.bool else mask.detach() == 0
    return None


def bound(module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name, also those of a dictionary that is the only one (a batch)."""
    try:
        found = dict(inspect.signature(module.forward).bind_partial(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        found = {}
    found |= kwargs
    for one in args:
        if isinstance(one, Mapping):
            found |= {name: value for name, value in one.items() if name not in found}
    return found


def asked_mask(mask: MaskFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor | None:
    """What the user's function says, checked."""
    found = mask(*args, **kwargs)
    if found is not None and not (isinstance(found, Tensor) and found.ndim == 2):
        said = f"a tensor {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        raise RankfallError(
            f"mask returns {said}: it is called as the model is, and returns (batch, tokens), True where there is a token"
        )
    return None if found is None else found.detach() != 0
