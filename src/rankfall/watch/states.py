"""The states (batch, tokens, width) in the inputs and outputs of a block, or an error of one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from rankfall.errors import RankfallError

StatesFunction = Callable[[Any], Tensor]
HINT = "say states= as a function from what a block returns to (batch, tokens, width)"


def states_of(output: Any, name: str, block: nn.Module, states: StatesFunction | None, batch_axis: int) -> Tensor:
    """Return the states (B, T, D) as a view of the block's output."""
    found = states(output) if states is not None else output
    called = f"block {name} ({type(block).__name__})"
    if isinstance(found, (tuple, list)) and found and states is None:
        refuse_two(found, called)
        found = found[0]
    if isinstance(found, Mapping):
        keys = ", ".join(map(str, found))
        some = next(iter(found), "x")
        raise RankfallError(
            f"{called} returns a dict with {keys}: {HINT}, such as states=lambda output: output[{some!r}]"
        )
    if not isinstance(found, Tensor):
        raise RankfallError(
            f"{called} returns {type(found).__name__}, not a tensor of states: {HINT}, or name other modules by blocks="
        )
    found = gather(found)
    if found.is_nested:
        raise RankfallError(f"{called} returns a nested tensor: say enable_nested_tensor=False, or {HINT}")
    shape = tuple(found.shape)
    if found.ndim == 4 and states is None:
        raise RankfallError(f"{called} returns {shape}: of (batch, height, width, channels) say states=lambda output: "
        f"output.flatten(1, 2), "
                            "of (batch, channels, height, width) output.flatten(2).mT")  # fmt: skip
    if found.ndim != 3 or not found.is_floating_point() or not found.numel():
        said = f"{str(found.dtype).removeprefix('torch.')} {shape}"
        if found.ndim == 2 and found.is_floating_point():  # of one graph, for example
            said += " (states=lambda output: output[None], if its rows are tokens of one sample)"
        raise RankfallError(
            f"{called} returns {said} where states (batch, tokens, width) are needed: {HINT}, or name other modules by blocks="
        )
    return found.detach().transpose(0, 1) if batch_axis else found.detach()


def gather(states: Any) -> Tensor:
    """Return the whole of a DTensor, by a collective of its processes, and other tensors as they are."""
    return states.detach().full_tensor() if hasattr(states, "to_local") else states


def refuse_two(output: Sequence[Any], called: str) -> None:
    """Raise an error if several tensors of the output could be the state, or their sum."""
    first = output[0]
    if not isinstance(first, Tensor) or first.ndim != 3:
        return
    alike = [
        n
        for n, one in enumerate(output)
        if isinstance(one, Tensor)
        and one.shape == first.shape
        and one.is_floating_point()
        and (n == 0 or one is not first)
    ]
    if len(alike) > 1:
        raise RankfallError(
            f"{called} returns {len(alike)} tensors {tuple(first.shape)}: say states=lambda output: output[0] + output[{alike[1]}] where "
            f"the next block adds them, or output[0] or output[{alike[1]}] where that alone is the state"
        )


def input_states(
    args: Sequence[Any], kwargs: Mapping[str, Any], states: StatesFunction | None, batch_axis: int
) -> Tensor | None:
    """Return the states (B, T, D) in the arguments of a block, or None if no argument is such a tensor."""
    given = [
        one
        for one in (*args, *kwargs.values())
        if isinstance(one, Tensor) and one.is_floating_point() and not one.is_nested
    ]
    if states is not None and not any(one.ndim == 3 for one in given):
        try:  # the function is meant for the outputs of blocks, which may have the form of their inputs
            found = states(args[0] if args else next(iter(kwargs.values())))
        except Exception:
            return None
        given = [found] if isinstance(found, Tensor) else []
    first = next((one for one in given if one.ndim == 3 and one.numel()), None)
    if first is None:
        return None
    first = gather(first)
    return first.detach().transpose(0, 1) if batch_axis else first.detach()


def check_not_turned(states: Tensor, given: Sequence[Sequence[int]], name: str) -> None:
    """Raise an error if a model transposes (batch, tokens) of its input to (tokens, batch) and batch_axis is not set."""
    here = tuple(states.shape[:2])
    shapes = [tuple(one) for one in given]
    if here[0] != here[1] and here not in shapes and here[::-1] in shapes:
        raise RankfallError(
            f"block {name} returns {tuple(states.shape)} where the model was given {here[::-1]} (batch, tokens): say batch_axis=1 if its "
            "states are (tokens, batch, width), or batch_axis=0 if they are not"
        )


def axis_of_batch(blocks: Sequence[nn.Module], names: Sequence[str], asked: int | None) -> int:
    """Return the batch axis of states, 0 or 1: the requested one, or the one of PyTorch's layers.

    Other blocks that hold attention with the batch second may or may not transpose the axes, so they need an explicit value.
    """
    if asked is not None:
        if asked not in (0, 1) or isinstance(asked, bool):
            raise RankfallError(
                f"batch_axis is {asked!r}: 0 where states are (batch, tokens, width), 1 where they are (tokens, batch, width)"
            )
        return asked
    own = [
        one
        for one in blocks
        if isinstance(one, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer, nn.MultiheadAttention))
    ]
    if own:
        attention = own[0] if isinstance(own[0], nn.MultiheadAttention) else own[0].self_attn
        return 0 if attention.batch_first else 1
    for name, block in zip(names, blocks):
        for inner, part in block.named_modules():
            if isinstance(part, nn.MultiheadAttention) and not part.batch_first:
                raise RankfallError(
                    f"{name}.{inner} is an nn.MultiheadAttention with batch_first=False: say batch_axis=1 if the states of blocks are "
                    "(tokens, batch, width), or batch_axis=0 if they are (batch, tokens, width)"
                )
    return 0


def scalar_in(output: Any) -> Tensor | None:
    """Return the loss in what a model returns: the tensor without axes, or the one that is called loss."""
    parts = output if isinstance(output, (tuple, list)) else [output]
    if isinstance(output, Mapping):
        parts = [output.get("loss")]
    return next(
        (one.detach() for one in parts if isinstance(one, Tensor) and one.ndim == 0 and one.is_floating_point()), None
    )
