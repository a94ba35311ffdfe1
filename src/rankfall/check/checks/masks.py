"""The check of masks and padding."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.check.equal import change_named, exchange_token, holders_of_tokens, named_tensors, token_inputs
from rankfall.check.named import Result, failed, named, passed, skipped, warned
from rankfall.check.recording import RecordedStream, is_triangle
from rankfall.errors import RankfallError
from rankfall.streams.arguments import Arguments, call_model
from rankfall.streams.axes import differs
from rankfall.streams.edits import Edits
from rankfall.streams.examine import alike_outputs, first_changed
from rankfall.streams.passes import PassResult, run_through
from rankfall.streams.record import tensors_in


@named("mask-works")
def mask_works(seen: RecordedStream) -> Result:
    """Does attention leave alone what the mask hides?

    A mask (B, T) or (B, 1, 1, T) among the inputs hides one token in the middle, and this token is changed. One of the two values of the
    mask must keep the states of all other tokens as they are, and the output must not read a token that is hidden at the end where the
    example has padding. A mask that changes nothing, whichever value it has, is named; one that changes the output and no state, as of a
    loss, is left out. If the example has no mask and ends in padding (the `padding_idx` of an embedding), the tokens of a sample must have
    the same output without its padding.
    """
    masks = {name: one for name, one in named_tensors(seen.examined.arguments).items() if is_mask(name, one, seen)}
    for name, mask in masks.items():
        said = call_argument(name)
        if inverted_changes(seen, name) == (False, True):
            if len(masks) == 1 < len(seen.examined.flows) and bool((mask != mask.flatten()[0]).any()):
                return warned(f"{said} changes the output and no state of these tokens: do they read what it hides?")
            continue  # of a loss
        leaks = [first_leak(seen, name, mask, value) for value in (0, 1)]
        if leaks == [None, None]:
            return skipped(f"no token reads the one in the middle, whatever {said} is")
        if None not in leaks:
            layer = max(one or 0 for one in leaks)
            where = f"a token in the layers before layer {layer}, and not in it" if layer > 1 else "no token"
            return failed(
                f"{said} hides {where}: others read it, whether it is True or False there", seen.layer_path(layer)
            )
        hides = leaks.index(None)
        hidden = int((mask == hides).sum())
        if hidden > mask.numel() / 2:
            return failed(f"{said} hides {hidden} of {mask.numel()} tokens of the example: is it inverted?")
        ends = [end for end in (0, -1) if bool((mask[..., end] == hides).any())] or [0, -1]
        if all(reads_hidden(seen, name, mask, hides, end) for end in ends):
            return failed(f"{said} hides a token from all others, but the output reads it: is it pooled over padding?")
        return passed(f"{said}: {'True' if hides else 'False'} hides a token from all others")
    others = [
        name for name, one in named_tensors(seen.examined.arguments).items() if one.dim() > 1 and hides_some(name, one)
    ]
    for name in others:
        if not any(inverted_changes(seen, name)):
            return failed(f"{call_argument(name)} changes nothing: the output is the same with all of it inverted")
    return passed(f"{', '.join(map(call_argument, others))} changes the output") if others else padding(seen)


def call_argument(name: str) -> str:
    """Return the name of an argument for a sentence, or its place if it has no name."""
    last = name.rpartition(".")[2]
    return f"argument {int(name) + 1}" if name.isdigit() else last


def hides_some(name: str, one: Tensor) -> bool:
    """Return whether an input may be a mask of another shape: by its name, or truth values, or numbers of which some are -inf."""
    return "mask" in name or one.dtype == torch.bool or (one.is_floating_point() and bool(one.isneginf().any()))


def is_mask(name: str, one: Tensor, seen: RecordedStream) -> bool:
    """Return whether an input is a mask of tokens: (B, T) or (B, 1, 1, T), of truth values, or of 0 and 1 and called a mask."""
    ones = one.dim() > 1 and one.shape[1:-1].numel() == 1
    fits = ones and not is_triangle(one) and (one.shape[0], one.shape[-1]) == seen.report.shape
    return fits and (one.dtype == torch.bool or ("mask" in name and bool(((one == 0) | (one == 1)).all())))


def pass_with(seen: RecordedStream, name: str, mask: Tensor, value: int, place: int, source: int) -> PassResult:
    """Run a pass with a value of the mask at one place and the other value elsewhere, and with the token of another place there."""
    other = torch.full_like(mask, 1 - value)
    other[..., place] = value
    tokens = holders_of_tokens(seen.examined.arguments, seen.report.shape) - {name}
    changed = change_named(seen.examined.arguments, tokens, lambda one: exchange_token(one, place, source))
    if changed is None:
        raise RankfallError(f"no argument is known to hold the tokens that {call_argument(name)} hides")
    arguments = change_named(changed, {name}, lambda one: other)
    assert arguments is not None
    return run_through(seen.examined.model, arguments, seen.flow, Edits())


def first_leak(seen: RecordedStream, name: str, mask: Tensor, value: int) -> int | None:
    """Return the first layer at which other tokens change with the one in the middle, where the mask has a value; None if none does."""
    place = seen.report.tokens // 2
    both = [pass_with(seen, name, mask, value, place, source).states for source in (place, place - 1)]
    rest = [number for number in range(seen.report.tokens) if number != place]
    pairs = [[seen.flow.layout.to_rows(state)[:, rest] for state in pair] for pair in zip(*both)]
    return next((layer for layer, pair in enumerate(pairs) if bool(differs(*pair).any())), None)


def reads_hidden(seen: RecordedStream, name: str, mask: Tensor, hides: int, end: int) -> bool:
    """Return whether the output of other tokens, or of the whole sample, changes with the token at one end although it is hidden."""
    samples, tokens = seen.report.samples, seen.report.tokens
    both = [tensors_in(pass_with(seen, name, mask, hides, end, place % tokens).output) for place in (1, 2)]
    rest = slice(1, None) if end == 0 else slice(0, -1)
    for (_, one), (_, other) in zip(*both):
        if one.dim() in (2, 3) and one.shape[0] == samples and one.is_floating_point() and one.shape == other.shape:
            rows = differs(one, other)
            if bool((rows[:, rest] if one.shape[1] == tokens else rows).any()):
                return True
    return False


def inverted_changes(seen: RecordedStream, name: str) -> tuple[bool, bool]:
    """Return whether states and output change with a mask inverted: truth values and 0 or 1 flipped, numbers that are added left out."""

    def invert(one: Tensor) -> Tensor:
        if one.dtype == torch.bool:
            return ~one
        return torch.zeros_like(one) if one.is_floating_point() else 1 - one

    changed = change_named(seen.examined.arguments, {name}, invert)
    assert changed is not None
    after = run_through(seen.examined.model, changed, seen.flow, Edits())
    rows = map(seen.flow.layout.to_rows, after.states)
    states = any(bool(differs(one, other).any()) for one, other in zip(rows, seen.states))
    return states, not alike_outputs(after.output, seen.output)


def padding(seen: RecordedStream) -> Result:
    """Compare the output of a sample that ends in padding with that without it."""
    tables = [one for one in seen.examined.model.modules() if isinstance(one, nn.Embedding)]
    indices = {int(one.padding_idx) for one in tables if one.padding_idx is not None}
    for name in token_inputs(seen.examined.arguments, seen.report.shape):
        tokens = named_tensors(seen.examined.arguments)[name]
        for row, index in ((row, index) for row in range(len(tokens)) for index in indices):
            length = int((tokens[row] != index).nonzero().max()) + 1 if bool((tokens[row] != index).any()) else 0
            if 0 < length < tokens.shape[1]:
                model, alike = seen.examined.model, partial(alike_beginnings, length)
                whole, short = (part_of(seen, name, row, kept) for kept in (tokens.shape[1], length))
                with torch.no_grad():
                    same = alike(call_model(model, whole), call_model(model, short))
                if not same:
                    path = first_changed(model, whole, short, alike)
                    return failed(
                        f"padding is attended: {length} tokens have another output if {tokens.shape[1] - length} of padding follow",
                        path,
                    )
                return passed(f"{length} tokens have the same output with padding and without")
    return skipped("the inputs have no mask and no padding")


def part_of(seen: RecordedStream, name: str, row: int, kept: int) -> Arguments:
    """Return the arguments with the first tokens of one sample."""
    part = change_named(seen.examined.arguments, {name}, lambda one: one[row : row + 1, :kept])
    assert part is not None
    return part


def alike_beginnings(length: int, one: Any, other: Any) -> bool:
    """Return whether two values agree: tensors (B, T, D) or (B, T) in their first tokens, (B, D) as a whole."""
    pairs = [(a, b) for (_, a), (_, b) in zip(tensors_in(one), tensors_in(other)) if a.is_floating_point()]
    pairs = [(a, b) if a.shape == b.shape else (a[:, :length], b[:, :length]) for a, b in pairs if 1 < a.dim() < 4]
    return not any(a.shape == b.shape and bool(differs(a, b).any()) for a, b in pairs)
