"""Read the states (batch, tokens, width) from the inputs and outputs of a block, or raise an error that says what to do.

`find_given_mask` reads the padding of a batch from the arguments of the model's call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

from torch import Tensor, nn

from rankfall.errors import RankfallError
from rankfall.streams.record import tensors_in

StatesFunction = Callable[[Any], Tensor]


def states_of(output: Any, name: str, states: StatesFunction | None, axis: int) -> Tensor:
    """Return the states (B, T, D) as a view of the block's output: its tensor, or the first of a tuple."""
    parts: Sequence[Any] = (
        [states(output)] if states is not None else output if isinstance(output, (tuple, list)) else [output]
    )
    first: Any = next(iter(parts), None)
    same_shape = [
        part for part in parts[1:] if isinstance(part, Tensor) and is_state(first) and part.shape == first.shape
    ]
    if not is_state(first) or any(part.is_floating_point() and part is not first for part in same_shape):
        keys = f"dict with {', '.join(map(str, output))}: " if isinstance(output, Mapping) else ""
        shapes = ", ".join(f"{str(tensor.dtype)[6:]} {tuple(tensor.shape)}" for _, tensor in tensors_in(output))
        raise RankfallError(
            f"block {name} returns {keys}{shapes or type(output).__name__}, where states (batch, tokens, width) are needed: say states= as "
            "a function from what a block returns to them, such as states=lambda output: output[0], or name other layers by blocks="
        )
    return detached_states(first, axis)


def is_state(value: Any) -> TypeGuard[Tensor]:
    return (
        isinstance(value, Tensor)
        and not value.is_nested
        and value.ndim == 3
        and value.is_floating_point()
        and value.numel() > 0
    )


def detached_states(states: Any, axis: int) -> Tensor:
    """Return states (B, T, D) without gradients. A DTensor is gathered by a collective of its processes."""
    whole: Tensor = states.detach().full_tensor() if hasattr(states, "to_local") else states.detach()
    return whole.transpose(0, 1) if axis else whole


def input_states(
    args: Sequence[Any], kwargs: Mapping[str, Any], states: StatesFunction | None, axis: int
) -> Tensor | None:
    """Return the states (B, T, D) in the arguments of a block, or None if no argument is such a tensor."""
    arguments = [*args, *kwargs.values()]
    first = next((argument for argument in arguments if is_state(argument)), None)
    if first is None and states is not None and arguments:
        try:  # the function is meant for the outputs of blocks, which may have the form of their inputs
            first = states(arguments[0])
        except Exception:
            return None
    return detached_states(first, axis) if is_state(first) else None


def check_not_turned(states: Tensor, input_shapes: Sequence[Sequence[int]], name: str) -> None:
    """Raise an error if a model transposes (batch, tokens) of its input to (tokens, batch) and batch_axis is not set."""
    axes = tuple(states.shape[:2])
    shapes = [tuple(shape) for shape in input_shapes]
    if axes[0] != axes[1] and axes not in shapes and axes[::-1] in shapes:
        raise RankfallError(
            f"block {name} returns {tuple(states.shape)} where the model was given {axes[::-1]} (batch, tokens): say batch_axis=1 if its "
            "states are (tokens, batch, width), or batch_axis=0 if they are not"
        )


def axis_of_batch(blocks: Mapping[str, nn.Module], requested: int | None) -> int:
    """Return the batch axis of states, 0 or 1: the requested one, or the one of PyTorch's layers.

    Other blocks that hold attention with the batch second may or may not transpose the axes, so they need an explicit value.
    """
    if requested is not None:
        return requested
    for name, block in blocks.items():
        if isinstance(block, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
            return 0 if block.self_attn.batch_first else 1
        for inner, part in block.named_modules():
            if isinstance(part, nn.MultiheadAttention) and not part.batch_first:
                raise RankfallError(
                    f"{name}.{inner} is an nn.MultiheadAttention with batch_first=False: say batch_axis=1 if the states of blocks are "
                    "(tokens, batch, width), or batch_axis=0 if they are (batch, tokens, width)"
                )
    return 0


def scalar_in(output: Any) -> Tensor | None:
    """Return the loss in the output of a model, or None: the first tensor without axes, or the entry `loss` of a mapping."""
    parts = output if isinstance(output, (tuple, list)) else [output]
    if isinstance(output, Mapping):
        parts = [output.get("loss")]
    return next(
        (part.detach() for part in parts if isinstance(part, Tensor) and part.ndim == 0 and part.is_floating_point()),
        None,
    )


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
    if padded or (mask.is_floating_point() and bool((mask < 0).any())):
        return mask == 0
    if mask.is_floating_point():
        return mask == 1 if bool(((mask == 0) | (mask == 1)).all() & (mask == 1).any()) else None
    return mask != 0


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
