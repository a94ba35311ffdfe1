"""Compare samples with and without the padding at their ends, if their tokens are numbers and no mask is among the inputs."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.check.equal import call_argument, change_named, named_inputs, named_tensors
from rankfall.check.named import Result, failed, passed, skipped, warned
from rankfall.check.recording import RecordedStream
from rankfall.streams.arguments import Arguments
from rankfall.streams.axes import differs
from rankfall.streams.examine import FAILURES, first_changed, plain
from rankfall.streams.record import tensors_in

FEWEST = 3  # tokens of one number at the ends of samples that may be padding; random examples seldom end in so many
KINDS = 4  # other token numbers in an input that holds tokens, and no segments


def check_padding(recording: RecordedStream) -> Result:
    """Compare the output of a sample with and without the padding at its end, for each input that holds token numbers."""
    model, arguments = recording.examined.model, recording.examined.arguments
    tables = [table for table in model.modules() if isinstance(table, nn.Embedding)]
    known = {int(table.padding_idx) for table in tables if table.padding_idx is not None}
    result = skipped("the inputs have no mask and no padding")
    for name, tokens in named_inputs(arguments).items():
        if tokens.dim() != 2 or tokens.dtype not in (torch.int64, torch.int32):
            continue
        for index in known | padding_numbers(tokens):
            visible = (tokens != index).long()
            lengths = (visible * torch.arange(1, tokens.shape[1] + 1)).amax(1).tolist()
            cut = [(row, length) for row, length in enumerate(lengths) if 0 < length < tokens.shape[1]]
            for row, length in cut:
                agree = partial(alike_beginnings, length)
                whole = cut_sample(arguments, {name}, tokens, row, tokens.shape[1])
                short = without_padding(model, arguments, name, tokens, row, length)
                if short is None:
                    continue
                with torch.no_grad():
                    same = agree(plain(model, whole), plain(model, short))
                if not same:
                    path = first_changed(model, whole, short, agree)
                    several = f" of {call_argument(name)}" * (len(recording.streams) > 1)
                    sentence = f"is attended: {length} tokens{several} have another output if {tokens.shape[1] - length} of padding follow"
                    if index in known:
                        return failed(f"padding {sentence}", path)
                    return warned(f"if {index} is padding, it {sentence}", path)
                result = passed(f"{length} tokens have the same output with padding and without")
    return result


def padding_numbers(tokens: Tensor) -> set[int]:
    """Return the token numbers (S, T) that only the ends of samples have, and that may be padding."""
    numbers = set()
    for index in {int(row[-1]) for row in tokens if bool((row[-2:] == row[-1]).all())}:
        equal = tokens == index
        at_the_end = bool((equal == equal.flip(1).long().cumprod(1).flip(1).bool()).all())
        if at_the_end and int(equal.sum()) >= FEWEST and len(tokens.unique()) > KINDS and index >= 0:
            numbers.add(index)
    return numbers


def without_padding(
    model: nn.Module, arguments: Arguments, name: str, tokens: Tensor, row: int, length: int
) -> Arguments | None:
    """Return the arguments with the first tokens of one sample, for which the model runs: with this input cut, or with all of its shape."""
    alike = {key for key, x in named_tensors(arguments).items() if x.shape[:2] == tokens.shape}
    for names in ({name}, alike):
        short = cut_sample(arguments, names, tokens, row, length)
        try:
            with torch.no_grad():
                plain(model, short)
        except FAILURES:
            continue
        return short
    return None


def cut_sample(arguments: Arguments, names: set[str], tokens: Tensor, row: int, kept: int) -> Arguments:
    """Return the arguments for one sample, with the first tokens of the named ones."""
    short = change_named(arguments, names, lambda x: x[:, :kept])
    assert short is not None
    return short.map(lambda x: x[row : row + 1] if x.dim() and len(x) == len(tokens) else x)


def alike_beginnings(length: int, whole: Any, short: Any) -> bool:
    """Return whether two values agree: tensors (B, T, D) or (B, T) in their first tokens, (B, D) as a whole."""
    pairs = [(a, b) for (_, a), (_, b) in zip(tensors_in(whole), tensors_in(short)) if a.is_floating_point()]
    pairs = [(a, b) if a.shape == b.shape else (a[:, :length], b[:, :length]) for a, b in pairs if 1 < a.dim() < 4]
    return not any(a.shape == b.shape and bool(differs(a, b).any()) for a, b in pairs)
