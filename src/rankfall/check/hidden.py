"""Find the tokens that attention hides, such as padding, and whether they reach other tokens past the mask.

If no mask is among the inputs, samples are compared with and without the padding at their ends.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.check.attention import masked_scores, weights_of
from rankfall.check.named import Result, failed, passed, skipped, warned
from rankfall.check.passes import (
    call_argument,
    change_entry,
    change_named,
    changed_outputs,
    changed_rows,
    named_inputs,
    named_tensors,
    run_pass,
)
from rankfall.check.reads import MASKED
from rankfall.check.recording import RecordedStream
from rankfall.streams.arguments import Arguments, in_float64
from rankfall.streams.axes import differs
from rankfall.streams.editor import PassResult, run_through
from rankfall.streams.examine import FAILURES, Examined, first_changed, plain
from rankfall.streams.flow import Edits, Flow
from rankfall.streams.mixing import FURTHER, PLACES, MixingTrial, TokenMixing, directions, try_places
from rankfall.streams.record import tensors_in

FEWEST = 3  # tokens of one number at the ends of samples that may be padding; random examples seldom end in so many
KINDS = 4  # other token numbers in an input that holds tokens, and no segments


def hidden_tokens(examined: Examined, flow: Flow, **edits: Any) -> tuple[Tensor, PassResult]:
    """Return the tokens (S, T) that have no weight in any row of any attention of the stream, and the pass that shows them.

    Without attention over the tokens none are hidden.
    """
    read: list[Tensor] = []  # which weights of an attention are not zero

    def attend(number: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = in_float64(func, args, kwargs)
        if flow.branches[number].mixes:
            weights, scores = weights_of(func, args, kwargs, result), masked_scores(func, args, kwargs)
            # a row that may read nothing weighs all tokens alike where masks are large finite numbers
            read.append(weights > 0 if scores is None else (weights > 0) & (scores > MASKED))
        return result

    after = run_pass(examined, flow, attend=attend, **edits)
    samples, tokens = after.states[0].shape[:2]
    square = [x for x in read if x.shape[-2:] == (tokens, tokens) and x.dim() > 2 and x.numel() % samples == 0]
    if not square:
        return torch.zeros(samples, tokens, dtype=torch.bool), after
    return ~torch.stack([x.reshape(samples, -1, tokens).any(1) for x in square]).any(
        0
    ), after  # (S, H * T, T) -> (S, T)


def ignore_hidden_rows(examined: Examined, flow: Flow, hidden: Tensor) -> Flow:
    """Return the stream with its branches causal if they are so for all rows but those of hidden tokens.

    A row that may read nothing, as padding on the left of a causal model, reads all tokens alike where masks are large finite numbers.
    """
    layout = flow.layout
    if not bool(hidden.any()) or not any(branch.backwards for branch in flow.branches):
        return flow
    if len(layout.samples) != 1 or len(layout.tokens) != 1 or layout.groups > 1 or layout.streams:
        return flow
    trial = MixingTrial(flow, {branch.number: TokenMixing() for branch in flow.branches})
    run_through(examined.model, examined.arguments, flow, Edits(edit=trial.keep, join=trial.keep_part))
    try_places(examined.model, examined.arguments, flow, trial, (*PLACES, *FURTHER))
    sample_first = layout.samples[0] < layout.tokens[0]
    branches = []
    for branch in flow.branches:
        result = trial.results[branch.number]
        spots = {pair for pair in result.spots if not hidden[pair[1] if sample_first else pair[1][::-1]]}
        later, earlier, after, _ = directions(replace(result, spots=spots), layout)
        causal = replace(branch, forwards=True, backwards=False, after=after, ahead=0)
        branches.append(causal if later and not earlier else branch)
    return replace(flow, branches=tuple(branches))


def reached_by_hidden(examined: Examined, flow: Flow, hidden: Tensor, states: list[Tensor], output: Any) -> int | None:
    """Change the hidden tokens of the first state. Return the first layer at which other tokens change; or None.

    The number behind the last layer stands for the output. Nothing is known if the weights of attention depend on the hidden tokens, as in
    sparse attention.
    """
    only_last = bool(hidden[:, -1].all()) and not bool(hidden[:, :-1].any())  # no token may see itself
    if only_last or any(state.shape[:2] != hidden.shape for state in states):
        return None
    generator = torch.Generator().manual_seed(3)

    def change(rows: Tensor) -> Tensor:
        noise = torch.randn(rows.shape, generator=generator, dtype=torch.float64).to(rows)
        return torch.where(hidden[..., None], noise * rows.pow(2).mean().sqrt() - rows, rows)

    still, after = hidden_tokens(examined, flow, enter=lambda tensor: change_entry(flow, tensor, change))
    if not torch.equal(still, hidden):
        return None
    layers = [layer for layer, rows in enumerate(changed_rows(after.states, states)) if bool((rows & ~hidden).any())]
    outputs = [changes for changes in changed_outputs(after.output, output).values() if changes.dim() > 1]
    return layers[0] if layers else flow.depth + 1 if reaches_output(outputs, [hidden]) else None


def reaches_output(outputs: list[Tensor], hidden: list[Tensor]) -> bool:
    """Return whether changes of an output (S, ...) or (T, S, ...) are elsewhere than at each of these sets of tokens (S, T)."""
    samples = len(hidden[0])
    for changes in outputs:
        if len(changes) != samples and changes.dim() > 1 and changes.shape[1] == samples:
            changes = changes.transpose(0, 1)
        if len(changes) == samples and all(is_visible(changes, rows) for rows in hidden if len(rows) == samples):
            return True
    return False


def is_visible(changes: Tensor, hidden: Tensor) -> bool:
    """Return whether an output (S, ...) changes elsewhere than at hidden tokens (S, T), along whichever axis holds the tokens.

    An axis may hold steps of several tokens, or several numbers for each token.
    """
    samples, tokens = hidden.shape
    along = []
    for axis in range(1, changes.dim()):
        size = changes.shape[axis]
        if size > 1 and (tokens % size == 0 or size % tokens == 0):
            steps = hidden.repeat_interleave(max(1, size // tokens), 1).view(samples, size, -1).any(-1)
            along.append(bool((changes.movedim(axis, 1).reshape(samples, size, -1).any(-1) & ~steps).any()))
    if not along and changes.dim() > 2:  # another number of tokens, as without registers: as many of them may change
        counts = changes.flatten(2).any(2).sum(1)  # (S,)
        return bool((counts > hidden.sum(1)).any())
    return all(along) if along else bool(changes.any())


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
    return short.map(lambda x: x[row : row + 1] if x.dim() and len(x) == len(tokens) else x)


def alike_beginnings(length: int, whole: Any, short: Any) -> bool:
    """Return whether two values agree: tensors (B, T, D) or (B, T) in their first tokens, (B, D) as a whole."""
    pairs = [(a, b) for (_, a), (_, b) in zip(tensors_in(whole), tensors_in(short)) if a.is_floating_point()]
    pairs = [(a, b) if a.shape == b.shape else (a[:, :length], b[:, :length]) for a, b in pairs if 1 < a.dim() < 4]
    return not any(a.shape == b.shape and bool(differs(a, b).any()) for a, b in pairs)
