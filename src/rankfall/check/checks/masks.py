"""The check of masks and padding."""

import torch
from torch import Tensor, nn

from rankfall.check.equal import change_named, exchange_token, holders_of_tokens, token_inputs
from rankfall.check.named import Result, failed, named, passed, skipped
from rankfall.check.recording import RecordedStream
from rankfall.streams.arguments import Arguments, call_model
from rankfall.streams.axes import differs
from rankfall.streams.edits import Edits
from rankfall.streams.passes import run_through
from rankfall.streams.record import tensors_in


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
        leaks = [first_leak(seen, name, mask, value) for value in (0, 1)]
        if None not in leaks:
            return failed(
                f"{name} hides no token: others change with it, whatever the mask is, from layer {leaks[0]} on",
                seen.layer_path(leaks[0] or 0),
            )
        if leaks == [None, None]:
            return skipped(f"no token reads the one in the middle, whatever {name} is")
        hides = leaks.index(None)
        hidden = int((mask == hides).sum())
        if hidden > mask.numel() / 2:
            return failed(f"{name} hides {hidden} of {mask.numel()} tokens of the example: is it inverted?")
        ends = [end for end in (0, -1) if bool((mask[:, end] == hides).any())] or [0, -1]
        if all(reads_hidden(seen, name, mask, hides, end) for end in ends):
            return failed(f"{name} hides a token from all others, but the output reads it: is it pooled over padding?")
        return passed(f"{name}: {'True' if hides else 'False'} hides a token from all others")
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


def hide(seen: RecordedStream, name: str, mask: Tensor, value: float, place: int, source: int) -> Arguments | None:
    """Set a mask to a value at one place and to the other value elsewhere, and the token there to that of another place.

    Return None if no input holds tokens.
    """
    other = torch.full_like(mask, 1 - value)
    other[:, place] = value
    tokens = holders_of_tokens(seen.examined.arguments, (seen.report.samples, seen.report.tokens)) - {name}
    changed = change_named(seen.examined.arguments, tokens, lambda one: exchange_token(one, place, source))
    return None if changed is None else change_named(changed, {name}, lambda one: other)


def first_leak(seen: RecordedStream, name: str, mask: Tensor, value: int) -> int | None:
    """Return the first layer at which other tokens change with the one in the middle, where the mask has a value; None if none does."""
    place = seen.report.tokens // 2
    both = [hide(seen, name, mask, value, place, source) for source in (place, place - 1)]
    if None in both:
        return None
    before, after = (run_through(seen.examined.model, one, seen.flow, Edits()).states for one in both if one)
    rest = [number for number in range(seen.report.tokens) if number != place]
    for layer, pair in enumerate(zip(before, after)):
        one, two = (seen.flow.layout.to_rows(state)[:, rest] for state in pair)
        if bool(differs(one, two).any()):
            return layer
    return None


def reads_hidden(seen: RecordedStream, name: str, mask: Tensor, hides: float, end: int) -> bool:
    """Return whether the output of other tokens, or of the whole sample, changes with the token at one end although it is hidden."""
    samples, tokens = seen.report.samples, seen.report.tokens
    both = [hide(seen, name, mask, hides, end, place % tokens) for place in (1, 2)]
    outs = [
        [tensor for _, tensor in tensors_in(call_model(seen.examined.model, one)) if tensor.is_floating_point()]
        for one in both
        if one is not None
    ]
    rest = slice(1, None) if end == 0 else slice(0, -1)
    for one, other in zip(*outs) if len(outs) == 2 else ():
        if one.dim() in (2, 3) and one.shape[0] == samples and one.shape == other.shape:
            rows = differs(one, other)
            if bool((rows[:, rest] if one.shape[1] == tokens else rows).any()):
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
    """Compare the output of a sample that ends in padding with that without it."""
    tables = [one for one in seen.examined.model.modules() if isinstance(one, nn.Embedding)]
    indices = {int(one.padding_idx) for one in tables if one.padding_idx is not None}
    for name in token_inputs(seen.examined.arguments, (seen.report.samples, seen.report.tokens)):
        tokens = all_inputs(seen.examined.arguments)[name]
        for row, index in ((row, index) for row in range(len(tokens)) for index in indices):
            length = int((tokens[row] != index).nonzero().max()) + 1 if bool((tokens[row] != index).any()) else 0
            if 0 < length < tokens.shape[1]:
                outs = [output_of_part(seen, name, row, kept)[:, :length] for kept in (tokens.shape[1], length)]
                if bool(differs(*outs).any()):
                    return failed(
                        f"padding is attended: {length} tokens have another output beside {tokens.shape[1] - length} of padding"
                    )
                return passed(f"{length} tokens have the same output with padding and without")
    return skipped("the inputs have no mask and no padding")


def output_of_part(seen: RecordedStream, name: str, row: int, kept: int) -> Tensor:
    """Return the output (1, T, D), or (1, 1, D) without an axis of tokens, of the first tokens of one sample."""
    part = change_named(seen.examined.arguments, {name}, lambda one: one[row : row + 1, :kept])
    assert part is not None
    with torch.no_grad():
        found = next(tensor for _, tensor in tensors_in(call_model(seen.examined.model, part)))
    return found if found.dim() > 2 else found[:, None]
