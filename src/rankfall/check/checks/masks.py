"""The check of masks and padding."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.check.equal import (
    call_argument,
    change_named,
    exchange_token,
    holders_of_tokens,
    named_inputs,
    named_tensors,
    token_inputs,
)
from rankfall.check.hidden import OTHERS, reached_by_hidden
from rankfall.check.named import NONE, PASS, Result, failed, named, passed, skipped, warned
from rankfall.check.reads import is_triangle
from rankfall.check.recording import RecordedStream
from rankfall.errors import RankfallError
from rankfall.streams.arguments import Arguments, call_model
from rankfall.streams.axes import differs
from rankfall.streams.editor import PassResult, run_through
from rankfall.streams.examine import alike_outputs, first_changed
from rankfall.streams.flow import Edits
from rankfall.streams.record import tensors_in


@named("mask-works")
def mask_works(recording: RecordedStream) -> Result:
    """Does the model leave alone what the mask hides?

    A mask (B, T) or (B, 1, 1, T) among the inputs hides one token in the middle, and this token is changed. With one of the two values of
    the mask, the states of all other tokens must stay as they are. The output must not read a token that is hidden at the end where the
    example has padding. The mask fails if others read the token with both values, or if the example hides more than half of its tokens.
    A mask of another shape fails if the output and all states are the same with all of it inverted. A mask that changes the output and
    no state, as of a loss, is left out. If the example has no mask and ends in padding (the `padding_idx` of an embedding), the tokens of
    a sample must have the same output without its padding.

    Last, tokens that no attention of the stream reads are changed in the first state, whatever made their mask. They must reach no other
    token and no other output, as by a convolution, a mean, or a decoder without the mask of its memory.
    """
    result = judge_masks(recording)
    if result.verdict not in (PASS, NONE) or recording.hidden is None or not bool(recording.hidden.any()):
        return result
    count, total = int(recording.hidden.sum()), recording.hidden.numel()
    states, output = recording.states, [tensor for _, tensor in tensors_in(recording.output)]
    reached = reached_by_hidden(recording.examined, recording.flow, recording.hidden, states, output)
    if reached is not None:
        layer, what = reached
        hidden = f"with {count} of {total} tokens that attention hides"
        if what == OTHERS:
            sentence = f"{what} change {hidden}, from layer {layer} on: does a convolution or a mean read padding?"
        else:
            sentence = (
                f"{what} changes {hidden}: is it pooled over padding, or does a decoder lack the mask of its memory?"
            )
        return failed(sentence, recording.layer_path(layer))
    return passed(f"{count} of {total} tokens are hidden, and reach no other") if result.verdict == NONE else result


def judge_masks(recording: RecordedStream) -> Result:
    """Return the verdict on the masks and the padding among the inputs."""
    masks = {
        name: tensor
        for name, tensor in named_tensors(recording.examined.arguments).items()
        if is_mask(name, tensor, recording)
    }
    for name, mask in masks.items():
        argument, values = call_argument(name), ("False", "True") if mask.dtype == torch.bool else ("0", "1")
        if inverted_changes(recording, name) == (False, True):
            if len(masks) == 1 < len(recording.examined.flows) and bool((mask != mask.flatten()[0]).any()):
                return warned(
                    f"{argument} changes the output and no state of these tokens: do they read what it hides?"
                )
            continue  # of a loss
        leaks = [first_leak(recording, name, mask, value) for value in (0, 1)]
        if leaks == [None, None]:
            return skipped(f"no token reads the one in the middle, whatever {argument} is")
        if None not in leaks:
            layer = max(leak or 0 for leak in leaks)
            where = f"a token in the layers before layer {layer}, and not in it" if layer > 1 else "no token"
            return failed(
                f"{argument} hides {where}: others read it, whether it is {' or '.join(values)} there",
                recording.layer_path(layer),
            )
        hides = leaks.index(None)
        hidden = int((mask == hides).sum())
        if hidden > mask.numel() / 2:
            return failed(f"{argument} hides {hidden} of {mask.numel()} tokens of the example: is it inverted?")
        ends = [end for end in (0, -1) if bool((mask[..., end] == hides).any())] or [0, -1]
        if all(reads_hidden(recording, name, mask, hides, end) for end in ends):
            return failed(
                f"{argument} hides a token from all others, but the output reads it: is it pooled over padding?"
            )
        return passed(f"{argument}: {values[hides]} hides a token from all others")
    candidates = [
        name
        for name, tensor in named_tensors(recording.examined.arguments).items()
        if tensor.dim() > 1 and may_be_mask(name, tensor)
    ]
    for name in candidates:
        if not any(inverted_changes(recording, name)):
            return failed(f"{call_argument(name)} changes nothing: the output is the same with all of it inverted")
    return (
        passed(f"{', '.join(map(call_argument, candidates))} changes the output")
        if candidates
        else check_padding(recording)
    )


def may_be_mask(name: str, tensor: Tensor) -> bool:
    """Return whether an input may be a mask of another shape: its name says so, or it has truth values, or some of its numbers are -inf."""
    return (
        "mask" in name or tensor.dtype == torch.bool or (tensor.is_floating_point() and bool(tensor.isneginf().any()))
    )


def is_mask(name: str, tensor: Tensor, recording: RecordedStream) -> bool:
    """Return whether an input is a mask of tokens, or of steps of several: (B, T) or (B, 1, 1, T) with truth values, or with 0 and 1 in
    an input that is called a mask.
    """
    by_token = tensor.dim() > 1 and tensor.shape[1:-1].numel() == 1
    samples, tokens = recording.report.shape
    steps = tensor.shape[-1] if tensor.dim() else 0  # a step may be several tokens
    fits = by_token and not is_triangle(tensor) and len(tensor) == samples and steps > 1 and tokens % steps == 0
    return fits and (tensor.dtype == torch.bool or ("mask" in name and bool(((tensor == 0) | (tensor == 1)).all())))


def pass_with(recording: RecordedStream, name: str, mask: Tensor, value: int, position: int, source: int) -> PassResult:
    """Run a pass with `value` in the mask at `position` and the other value elsewhere. The token at `position` is that of `source`."""
    new_mask = torch.full_like(mask, 1 - value)
    new_mask[..., position] = value
    shape = (recording.report.samples, mask.shape[-1])
    if shape == recording.report.shape:
        tokens = holders_of_tokens(recording.examined.arguments, shape) - {name}
    else:
        tokens = {key for key, x in named_inputs(recording.examined.arguments).items() if tuple(x.shape[:2]) == shape}
    changed = change_named(
        recording.examined.arguments, tokens - {name}, lambda tensor: exchange_token(tensor, position, source)
    )
    if changed is None:
        raise RankfallError(f"no argument is known to hold the tokens that {call_argument(name)} hides")
    arguments = change_named(changed, {name}, lambda _: new_mask)
    assert arguments is not None
    return run_through(recording.examined.model, arguments, recording.flow, Edits())


def first_leak(recording: RecordedStream, name: str, mask: Tensor, value: int) -> int | None:
    """Return the first layer at which other tokens change with the middle one if the mask has `value` there; None if none changes."""
    steps, tokens = mask.shape[-1], recording.report.tokens
    position = steps // 2
    runs = [pass_with(recording, name, mask, value, position, source).states for source in (position, position - 1)]
    others = [number for number in range(tokens) if number * steps // tokens != position]
    pairs = [[recording.flow.layout.to_rows(state)[:, others] for state in pair] for pair in zip(*runs)]
    return next((layer for layer, pair in enumerate(pairs) if bool(differs(*pair).any())), None)


def reads_hidden(recording: RecordedStream, name: str, mask: Tensor, hides: int, end: int) -> bool:
    """Return whether the output of other tokens, or of the whole sample, changes with a hidden token at one end."""
    samples, tokens = recording.report.samples, mask.shape[-1]
    outputs = [tensors_in(pass_with(recording, name, mask, hides, end, source % tokens).output) for source in (1, 2)]
    visible = slice(1, None) if end == 0 else slice(0, -1)
    for (_, x), (_, y) in zip(*outputs):
        if x.dim() in (2, 3) and x.shape[0] == samples and x.is_floating_point() and x.shape == y.shape:
            rows = differs(x, y)
            if bool((rows[:, visible] if x.shape[1] == tokens else rows).any()):
                return True
    return False


def inverted_changes(recording: RecordedStream, name: str) -> tuple[bool, bool]:
    """Return whether states and whether the output change with an inverted mask. Truth values are flipped, numbers to be added become 0."""

    def invert(mask: Tensor) -> Tensor:
        if mask.dtype == torch.bool:
            return ~mask
        return torch.zeros_like(mask) if mask.is_floating_point() else 1 - mask

    changed = change_named(recording.examined.arguments, {name}, invert)
    assert changed is not None
    after = run_through(recording.examined.model, changed, recording.flow, Edits())
    rows = map(recording.flow.layout.to_rows, after.states)
    states = any(bool(differs(state, before).any()) for state, before in zip(rows, recording.states))
    return states, not alike_outputs(after.output, recording.output)


def check_padding(recording: RecordedStream) -> Result:
    """Compare the output of a sample with and without the padding at its end."""
    tables = [table for table in recording.examined.model.modules() if isinstance(table, nn.Embedding)]
    indices = {int(table.padding_idx) for table in tables if table.padding_idx is not None}
    for name in token_inputs(recording.examined.arguments, recording.report.shape):
        tokens = named_tensors(recording.examined.arguments)[name]
        for row, index in ((row, index) for row in range(len(tokens)) for index in indices):
            length = int((tokens[row] != index).nonzero().max()) + 1 if bool((tokens[row] != index).any()) else 0
            if 0 < length < tokens.shape[1]:
                model, agree = recording.examined.model, partial(alike_beginnings, length)
                whole, short = (cut_sample(recording, name, row, kept) for kept in (tokens.shape[1], length))
                with torch.no_grad():
                    same = agree(call_model(model, whole), call_model(model, short))
                if not same:
                    path = first_changed(model, whole, short, agree)
                    return failed(
                        f"padding is attended: {length} tokens have another output if {tokens.shape[1] - length} of padding follow",
                        path,
                    )
                return passed(f"{length} tokens have the same output with padding and without")
    return skipped("the inputs have no mask and no padding")


def cut_sample(recording: RecordedStream, name: str, row: int, kept: int) -> Arguments:
    """Return the arguments with the first tokens of one sample."""
    sample = change_named(recording.examined.arguments, {name}, lambda tokens: tokens[row : row + 1, :kept])
    assert sample is not None
    return sample


def alike_beginnings(length: int, whole: Any, short: Any) -> bool:
    """Return whether two values agree: tensors (B, T, D) or (B, T) in their first tokens, (B, D) as a whole."""
    pairs = [(a, b) for (_, a), (_, b) in zip(tensors_in(whole), tensors_in(short)) if a.is_floating_point()]
    pairs = [(a, b) if a.shape == b.shape else (a[:, :length], b[:, :length]) for a, b in pairs if 1 < a.dim() < 4]
    return not any(a.shape == b.shape and bool(differs(a, b).any()) for a, b in pairs)
