"""The padding of a batch, from the arguments of the model's call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from rankfall.errors import RankfallError

REAL = ("decoder_attention_mask", "attention_mask", "padding_mask", "input_mask")  # 1 or True: a token
PADDED = ("src_key_padding_mask", "tgt_key_padding_mask", "key_padding_mask")  # True or -inf: padding
MaskFunction = Callable[..., Tensor | None]


def find_given_mask(module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[bool, Tensor | None]:
    """Return whether the arguments of a call specify padding, and the real tokens (B, T), where None means no padding."""
    named = bind_arguments(module, args, kwargs)
    for name in (*REAL, *PADDED):
        if name in named and named[name] is None:
            continue
        mask = named.get(name)
        if isinstance(mask, Tensor) and mask.ndim == 2:
            real = read_mask(mask.detach(), name in PADDED)
            if real is not None:
                return True, real
        elif isinstance(mask, Tensor):  # a mask of pairs of tokens, computed from one passed to an outer module
            return False, None
    return any(name in named for name in (*REAL, *PADDED)), None


def read_mask(mask: Tensor, padded: bool) -> Tensor | None:
    """Convert a mask to True at tokens. A mask that is added to scores is 0 at tokens and far below 0 at padding; others are 1 and 0."""
    if mask.is_floating_point():
        if bool((mask < 0).any()):
            return mask == 0
        if padded:
            return mask == 0
        return mask == 1 if bool(((mask == 0) | (mask == 1)).all() & (mask == 1).any()) else None
    return (mask == 0) if padded else (mask != 0)


def bind_arguments(module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments by name, including the entries of dictionaries among them (a batch)."""
    try:
        named = dict(inspect.signature(module.forward).bind_partial(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        named = {}
    named |= kwargs
    for argument in args:
        if isinstance(argument, Mapping):
            named |= {name: value for name, value in argument.items() if name not in named}
    return named


def call_mask_function(mask: MaskFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor | None:
    """Call the user's mask function and check its result."""
    real = mask(*args, **kwargs)
    if real is not None and not (isinstance(real, Tensor) and real.ndim == 2):
        description = f"a tensor {tuple(real.shape)}" if isinstance(real, Tensor) else type(real).__name__
        raise RankfallError(
            f"mask returns {description}: it receives the arguments of the model and must return (batch, tokens), True at tokens"
        )
    return None if real is None else real.detach() != 0
