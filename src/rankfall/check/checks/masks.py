"""The check of masks and padding."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rankfall.check.equal import change_named, holders_of_tokens, token_inputs
from rankfall.check.named import Result, failed, named, passed, skipped
from rankfall.check.recording import RecordedStream
from rankfall.streams.arguments import Arguments, call_model
from rankfall.streams.axes import differs
from rankfall.streams.edits import Edits
from rankfall.streams.passes import run_through
from rankfall.streams.record import tensors_in


@dataclass(frozen=True)
class Hidden:
    """Whether states of other tokens change with a token, for each value of the mask at that token."""

    value: float
    leaks: int | None  # the first layer that changes; None if none does


@named("mask-works")
def mask_works(seen: RecordedStream) -> Result:
    """Does attention leave alone what the mask hides?

    A mask (B, T) among the inputs hides one token in the middle, and this token is changed. One of the two values of the mask must keep the
    states of all other tokens as they are, and the output must not read a token that is hidden at the end where the example has padding. A
    mask that changes nothing, whichever value it has, is named. If the example has no mask and ends in padding (the `padding_idx` of an
    embedding), the tokens of a sample must have the same output without its padding.
    """
    masks = {name: one for name, one in all_inputs(seen.examined.arguments).items() if is_mask(name, one, seen)}
    for name, mask in masks.items():
        values = [try_value(seen, name, mask, value) for value in (0, 1)]
        if all(one.leaks is not None for one in values):
            layer = values[0].leaks or 0
            return failed(
                f"{name} hides no token: others change with it, whatever the mask is, from layer {layer} on", seen.layer_path(layer)
            )  # fmt: skip
        if all(one.leaks is None for one in values):
            return skipped(f"no token reads the one in the middle, whatever {name} is")
        hides = next(one.value for one in values if one.leaks is None)
        hidden = int((mask == hides).sum())
        if hidden > mask.numel() / 2:
            return failed(f"{name} hides {hidden} of {mask.numel()} tokens of the example: is it inverted?")
        if pools_hidden(seen, name, mask, hides):
            return failed(f"{name} hides a token from all others, but the output reads it: is it pooled over padding?")
        return passed(f"{name}: {'False' if not hides else 'True'} hides a token from all others")
    squares = [name for name, one in all_inputs(seen.examined.arguments).items() if "mask" in name and one.dim() >= 2]
    ignored = [name for name in squares if is_ignored(seen, name)]
    if ignored:
        return failed(f"{ignored[0]} changes nothing: the output is the same with all of it inverted")
    if squares:
        return passed(f"{', '.join(squares)} changes the output")
    return padding(seen)


def all_inputs(arguments: Arguments) -> dict[str, Tensor]:
    named_ = [*((str(place), one) for place, one in enumerate(arguments.args)), *arguments.kwargs.items()]
    return {name: one for name, one in named_ if isinstance(one, Tensor)}


def is_mask(name: str, one: Tensor, seen: RecordedStream) -> bool:
    """Return whether an input is a mask of tokens: (B, T), of truth values, or of whole numbers and called a mask."""
    fits = tuple(one.shape) == (seen.report.samples, seen.report.tokens)
    return fits and (one.dtype == torch.bool or ("mask" in name and bool(((one == 0) | (one == 1)).all())))


def try_value(seen: RecordedStream, name: str, mask: Tensor, value: int) -> Hidden:
    """Set the mask to a value at the token in the middle and to the other value elsewhere, change this token and look at the others."""
    shape = (seen.report.samples, seen.report.tokens)
    place = shape[1] // 2
    other = torch.full_like(mask, 1 - value)
    other[:, place] = value
    masked = change_named(seen.examined.arguments, {name}, lambda one: other)
    assert masked is not None
    tokens = holders_of_tokens(masked, shape) - {name}

    def change(one: Tensor) -> Tensor:
        moved = one.clone()
        moved[:, place] = moved[:, place - 1].flip(-1) if moved.dim() > 2 else moved[:, place - 1]
        return moved

    changed = change_named(masked, tokens, change)
    if changed is None:
        return Hidden(value, None)
    before, after = (run_through(seen.examined.model, one, seen.flow, Edits()).states for one in (masked, changed))
    rest = [number for number in range(shape[1]) if number != place]
    for layer, pair in enumerate(zip(before, after)):
        one, two = (seen.flow.layout.to_rows(state)[:, rest] for state in pair)
        if bool(differs(one, two).any()):
            return Hidden(value, layer)
    return Hidden(value, None)


def pools_hidden(seen: RecordedStream, name: str, mask: Tensor, hides: float) -> bool:
    """Return whether the output reads a token that the mask hides, at the end where the example has its padding, or at both ends."""
    ends = [end for end in (0, -1) if bool((mask[:, end] == hides).any())] or [0, -1]
    return all(reads_hidden(seen, name, mask, hides, end) for end in ends)


def reads_hidden(seen: RecordedStream, name: str, mask: Tensor, hides: float, end: int) -> bool:
    """Return whether the output of other tokens, or of the whole sample, changes with the token at one end although it is hidden."""
    shape = (seen.report.samples, seen.report.tokens)
    hidden = torch.full_like(mask, 1 - hides)
    hidden[:, end] = hides
    tokens = holders_of_tokens(seen.examined.arguments, shape) - {name}
    outs = []
    for place in (1, 2):

        def change(one: Tensor, place: int = place) -> Tensor:
            changed = one.clone()
            changed[:, end] = one[:, place % shape[1]]
            return changed

        changed = change_named(seen.examined.arguments, tokens, change)
        masked = change_named(changed, {name}, lambda one: hidden) if changed is not None else None
        if masked is None:
            return False
        outs.append([one for _, one in tensors_in(call_model(seen.examined.model, masked)) if one.is_floating_point()])
    rest = slice(1, None) if end == 0 else slice(0, -1)
    for one, other in zip(*outs):
        if one.dim() in (2, 3) and one.shape[0] == shape[0] and one.shape == other.shape:
            rows = differs(one, other)
            if bool((rows[:, rest] if one.shape[1] == shape[1] else rows).any()):
                return True
    return False


def is_ignored(seen: RecordedStream, name: str) -> bool:
    """Return whether the states stay the same with a mask inverted: truth values and 0 or 1 flipped, numbers that are added left out."""

    def invert(one: Tensor) -> Tensor:
        if one.dtype == torch.bool:
            return ~one
        return torch.zeros_like(one) if one.is_floating_point() else 1 - one

    changed = change_named(seen.examined.arguments, {name}, invert)
    assert changed is not None
    after = run_through(seen.examined.model, changed, seen.flow, Edits()).states
    return not any(bool(differs(seen.flow.layout.to_rows(one), other).any()) for one, other in zip(after, seen.states))


def padding(seen: RecordedStream) -> Result:
    """Compare the states of tokens with and without the columns at the end that are padding in every sample."""
    shape = (seen.report.samples, seen.report.tokens)
    numbers = token_inputs(seen.examined.arguments, shape)
    tables = [one for one in seen.examined.model.modules() if isinstance(one, nn.Embedding)]
    indices = {int(one.padding_idx) for one in tables if one.padding_idx is not None}
    for name in numbers:
        tokens = all_inputs(seen.examined.arguments)[name]
        for index in indices:
            rows = [
                row for row in range(shape[0]) if int(tokens[row, -1]) == index and bool((tokens[row] != index).any())
            ]
            if rows:
                return without_padding(seen, name, tokens, rows[0], index)
    return skipped("the inputs have no mask and no padding")


def without_padding(seen: RecordedStream, name: str, tokens: Tensor, row: int, index: int) -> Result:
    """Run one sample alone, with its padding and without."""
    length = int((tokens[row] != index).nonzero().max()) + 1
    outs = []
    for kept in (tokens.shape[1], length):
        given = change_named(seen.examined.arguments, {name}, lambda one, kept=kept: one[row : row + 1, :kept])  # type: ignore[misc]
        assert given is not None
        with torch.no_grad():
            found = call_model(seen.examined.model, given)
        found = found if isinstance(found, Tensor) else next(iter(found.values() if isinstance(found, dict) else found))
        outs.append(found[:, :length] if found.dim() > 2 else found)
    if bool(differs(outs[0], outs[1]).any()):
        return failed(
            f"padding is attended: {length} tokens have another output beside {tokens.shape[1] - length} of padding"
        )
    return passed(f"{length} tokens have the same output with padding and without")
