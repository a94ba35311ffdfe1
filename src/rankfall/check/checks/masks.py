"""The check of masks and padding."""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from rankfall.check.hidden import check_padding, hidden_tokens, reached_by_hidden
from rankfall.check.named import FAIL, PASS, WARN, Result, failed, named, passed, skipped, warned
from rankfall.check.padding import (
    HIDES,
    Mask,
    Reached,
    at_an_end,
    holders,
    inverted_changes,
    label_of,
    lengths_of,
    masks_of,
    output_reached,
    reach,
    scores_change,
)
from rankfall.check.passes import Change, call_argument, change_named, named_inputs, named_tensors
from rankfall.check.recording import RecordedStream
from rankfall.streams.arguments import Arguments
from rankfall.streams.examine import FAILURES


@named("mask-works")
def mask_works(recording: RecordedStream) -> Result:
    """Does the model leave alone what the mask hides?

    Each mask of tokens among the inputs, (B, T), (B, 1, 1, T) or (B, H, T, T), hides one token in the middle, and this token is changed,
    in one input after the other. With one of the two values of the mask, the states of all other tokens must stay as they are, in all
    streams that the input reaches: its own, and a decoder that reads it. Then the tokens that the example hides are changed. No other
    token and no other output may follow. Lengths are tried in the same way. The check also fails if the example hides more than half of
    its tokens, or if attention hides tokens that no mask and no length hides, as a mask that is shifted by registers does. A mask that
    changes no state, as of a loss, is left out. Any other mask fails if nothing changes with all of it inverted.

    If the example has no mask and ends in padding (the `padding_idx` of an embedding, or a number that only the ends of samples have), the
    tokens of a sample must have the same output without it. A number that may be padding warns.

    Last, tokens that no attention of a stream reads are changed in its first state, whatever made their mask. They must reach no other
    token and no other output, as by a convolution, a mean, or a decoder without the mask of its memory.
    """
    recordings = [each for each in recording.streams if each.report.judged]
    result = judge_inputs(recordings)
    if result.verdict in (FAIL, WARN):
        return result
    padding = [(each, each.hidden) for each in recordings if each.hidden is not None and bool(each.hidden.any())]
    for each, hidden in padding:
        layer = reached_by_hidden(each.examined, each.flow, hidden, each.states, each.output)
        tokens = f"{int(hidden.sum())} of {hidden.numel()} tokens that attention hides"
        if layer is not None and layer > each.flow.depth:
            cause = "is it pooled over padding, or does a decoder lack the mask of its memory?"
            return failed(f"the output changes with {tokens}: {cause}", each.layer_path(each.flow.depth))
        if layer is not None:
            cause = "does a convolution or a mean read padding?"
            return failed(f"other tokens change with {tokens}, from layer {layer} on: {cause}", each.layer_path(layer))
    if result.verdict == PASS or not padding:
        return result
    return passed(f"{int(padding[0][1].sum())} of {padding[0][1].numel()} tokens are hidden, and reach no other")


@dataclass(frozen=True)
class Judged:
    """The verdict on a mask or on lengths, the rows (S, T) of each stream that they hide, and the change by which they hide none."""

    result: Result
    rows: list[Tensor] = field(default_factory=list)
    show: Change | None = None


def judge_inputs(recordings: list[RecordedStream]) -> Result:
    """Return the verdict on the masks, the lengths and the padding among the inputs."""
    arguments, model = recordings[0].examined.arguments, recordings[0].examined.model
    masks = masks_of(arguments, model)
    flags = {mask.name for mask in masks}
    lengths = lengths_of(arguments, model, flags)
    accounted = [torch.zeros(each.states[0].shape[:2], dtype=torch.bool) for each in recordings]
    visible = arguments  # the arguments with nothing hidden
    results: list[Result] = []
    for mask, judge in (*((mask, judge_mask) for mask in masks), *((mask, judge_lengths) for mask in lengths)):
        try:
            judged = judge(recordings, [mask], flags)
            twins = [other for other in masks if other.tensor.shape == mask.tensor.shape]
            twins = [other for other in twins if torch.equal(other.tensor, mask.tensor)]
            # one mask for the encoder, and the same one for its memory
            if judged.result.verdict == FAIL and len(twins) > 1:
                judged = judge_mask(recordings, twins, flags)
        except FAILURES:  # the model refuses the changed inputs
            continue
        if judged.result.verdict == FAIL:
            return judged.result
        results.append(judged.result)
        if judged.show is not None:
            accounted = [rows | own for rows, own in zip(accounted, judged.rows)]
            visible = change_named(visible, {mask.name}, judged.show)
    passes, tried = [result for result in results if result.verdict == PASS], {mask.name for mask in (*masks, *lengths)}
    if passes:
        return hidden_beyond(recordings, accounted, visible, tried) or passes[0]
    candidates = [name for name, x in named_tensors(arguments).items() if may_be_mask(label_of(model, name), x)]
    for name in candidates:
        if not any(inverted_changes(recordings, name)):
            return failed(f"{call_argument(name)} changes nothing: the output is the same with all of it inverted")
    if candidates and not set(candidates) <= tried:
        return passed(f"{', '.join(map(call_argument, candidates))} changes the output")
    return results[0] if results else check_padding(recordings[0])


def judge_mask(recordings: list[RecordedStream], masks: list[Mask], flags: set[str]) -> Judged:
    """Hide tokens by masks that are equal. `flags`: the names of all masks."""
    mask = masks[0]
    arguments, argument = recordings[0].examined.arguments, call_argument(mask.name)
    shown = {value: str(value) if mask.tensor.dtype == torch.bool else f"{value:g}" for value in mask.values}
    either = " or ".join(shown.values())
    if mask.by_head:
        repeats = f"{argument} repeats samples, but the heads of a sample stand together: use repeat_interleave"
        return Judged(failed(repeats))
    states, outputs = inverted_changes(recordings, mask.name)
    # vectors of whole samples follow a mask of tokens, and not one of a loss
    pooled = any(x.dim() == 2 and len(x) == mask.shape[0] and tuple(x.shape) != mask.shape for x in outputs)
    if not states and outputs and not pooled:
        if scores_change(recordings, mask.name):
            return Judged(failed(f"{argument} changes scores and no state: is it on the axis of queries?"))
        return Judged(skipped(f"{argument} changes the output and no state"))

    def hide(hidden: Tensor, value: float) -> Arguments:
        return change_named(arguments, {each.name for each in masks}, lambda _: mask.hiding(hidden, value))

    names = sorted(holders(arguments, mask.shape, flags))
    if not names:
        return Judged(skipped(f"no argument is known to hold the tokens that {argument} hides"))
    steps = torch.arange(mask.shape[1]).expand(mask.shape)
    # a model that turns its mask into lengths cannot hide the middle
    for block in (steps == mask.shape[1] // 2, steps >= mask.shape[1] * 3 // 4):
        # the input and the stream -> what the token in the middle reaches with each value
        keys = [(name, number) for number in range(len(recordings)) for name in names]
        trials = {
            key: [reach(recordings[key[1]], hide(block, value), {key[0]}, block) for value in mask.values]
            for key in keys
        }
        trials = {key: pair for key, pair in trials.items() if any(each.layer is not None for each in pair)}
        hiding = {key: [each.layer for each in pair].index(None) for key, pair in trials.items() if leaks(pair) is None}
        if hiding:
            break
    if not trials or all(not each.finite for pair in trials.values() for each in pair):
        return Judged(skipped(f"no token reads the one in the middle, whatever {argument} is"))
    hidden_names = {name for name, _ in hiding}

    def failure(key: tuple[str, int]) -> Judged:
        each, layer = recordings[key[1]], leaks(trials[key]) or 0
        where = f"a token in the layers before layer {layer}, and not in it" if layer > 1 else "no token"
        sentence = f"{argument} hides {where}: others read it, whether it is {either} there"
        if not any(result.own.any() for result in trials[key]):
            whom = each.flow.name or "the layers"
            sentence = f"{argument} hides no token from {whom}: does a decoder lack the mask of its memory?"
        return Judged(failed(sentence, each.layer_path(layer)))

    if not hiding:
        known = any(word in mask.label for word in HIDES) and not mask.square
        ends = [hidden for value in mask.values if bool((hidden := mask.hidden(value)).any())]
        if known or (len(ends) > 1 and all(map(at_an_end, ends))):
            inside = [key for key, pair in trials.items() if bool(pair[0].own.any())]
            return failure((inside or list(trials))[0])
        return Judged(skipped(f"{argument} hides no token, whether it is {either} there"))
    for key in trials:
        if key[0] in hidden_names and key not in hiding:
            return failure(key)
    hides = next(iter(hiding.values()))
    if others := [number for (_, number), other in hiding.items() if other != hides]:
        return Judged(failed(f"{argument} is inverted in {recordings[others[0]].flow.name}"))
    value = mask.values[hides]
    example = mask.hidden(value)
    share = int(example.sum())
    entered = any(bool(pair[hides].own.any()) for pair in trials.values())
    if share > example.numel() / 2 and entered and not mask.square:
        unread = [int(each.hidden.sum()) for each in recordings if each.hidden is not None]
        sentence = (
            "hides other tokens than it says: is it shifted, as by tokens in front?" if example.numel() - share in unread
            else f"hides {share} of {example.numel()} tokens of the example: is it inverted?"
        )  # fmt: skip
        return Judged(failed(f"{argument} {sentence}"))
    calls = [(example, arguments)]
    if not share:
        right = torch.arange(mask.shape[1]) >= mask.shape[1] - 1 - torch.arange(mask.shape[0])[:, None] % 2
        calls = [(tokens, hide(tokens, value)) for tokens in (right, right.flip(1))]
    none = mask.hiding(torch.zeros(mask.shape, dtype=torch.bool), value)
    results = []
    for tokens, call in calls:
        reached = [reach(each, call, hidden_names, tokens) for each in recordings]
        if (result := reaches_others(argument, recordings, reached, tokens)) is None:
            sentence = f"{argument}: {shown[value]} hides a token from all others"
            return Judged(passed(sentence), [each.rows_of(tokens) for each in reached], lambda _: none)
        results.append(result)
    return Judged(results[-1])


def leaks(pair: list[Reached]) -> int | None:
    """Return the last layer at which a token begins to reach others, whichever value the mask has; None if it does so with one value."""
    layers = [each.layer for each in pair]
    return None if None in layers else max(layer or 0 for layer in layers)


def reaches_others(
    argument: str, recordings: list[RecordedStream], reached: list[Reached], hidden: Tensor
) -> Result | None:
    """Return a failure if hidden tokens (S, T) reach others, or an output of others."""
    tokens = f"{int(hidden.sum())} of {hidden.numel()} tokens that {argument} hides"
    for each, result in zip(recordings, reached):
        if result.layer is not None:
            unread = each.hidden is not None and not bool((result.own & ~each.hidden).any())  # by attention
            cause = "does a convolution or a mean read padding?" if unread else "do all layers get this mask?"
            sentence = f"other tokens change with {tokens}, from layer {result.layer} on: {cause}"
            return failed(sentence, each.layer_path(result.layer))
    if output_reached(reached, hidden):
        return failed(f"the output reads {tokens}, and no other token does: is it pooled over padding?")
    return None


def judge_lengths(recordings: list[RecordedStream], masks: list[Mask], flags: set[str]) -> Judged:
    """Change the tokens behind the lengths of samples, or before them if padding is on the left. `flags`: the names of all masks."""
    mask = masks[0]
    arguments, argument = recordings[0].examined.arguments, call_argument(mask.name)

    def show(x: Tensor) -> Tensor:
        return torch.full_like(x, int(x.max()))

    def skip(reason: str) -> Judged:  # then nothing is known of any row
        return Judged(skipped(reason), [torch.ones(each.states[0].shape[:2]).bool() for each in recordings], show)

    lengths = mask.tensor.flatten()
    if int(lengths.min()) == mask.shape[1]:
        lengths = lengths - 1 - torch.arange(len(lengths)) % 2
        arguments = change_named(arguments, {mask.name}, lambda x: lengths.reshape(x.shape))
    behind = torch.arange(mask.shape[1]) >= lengths[:, None]
    failures = []
    for hidden in (behind, behind.flip(1)):
        try:
            reached = [reach(each, arguments, holders(arguments, mask.shape, flags), hidden) for each in recordings]
        except FAILURES:
            return skip(f"the model fails with other {argument}")
        if not any(result.arrives for result in reached):
            return skip(f"no token behind {argument} reaches the layers")
        result = reaches_others(argument, recordings, reached, hidden)
        if result is None:
            sentence = f"{argument}: {int(hidden.sum())} of {hidden.numel()} tokens are hidden, and reach no other"
            return Judged(passed(sentence), [each.rows_of(hidden) for each in reached], show)
        failures.append(result)
    return Judged(failures[0])


def hidden_beyond(
    recordings: list[RecordedStream], accounted: list[Tensor], visible: Arguments, flags: set[str]
) -> Result | None:
    """Return a failure if attention hides tokens that the masks and lengths, `flags`, do not hide and that it reads once these hide none.

    It warns if it hides tokens that are not among the inputs, whatever these hide.
    """
    for each, rows in zip(recordings, accounted):
        if each.hidden is None or not bool((each.hidden & ~rows).any()):
            continue
        try:
            always, _ = hidden_tokens(replace(each.examined, arguments=visible), each.flow)
        except FAILURES:
            continue
        extra = each.hidden & ~rows & ~always
        if bool(extra.any()):
            sample, token = (int(number) + 1 for number in extra.nonzero()[0])
            return failed(
                f"the inputs hide {int(rows.sum())} of {rows.numel()} tokens, and attention hides {int(extra.sum())} others, first token "
                f"{token} of sample {sample}: is the mask shifted, or are tokens added before it is made?"
            )
        inputs = {name: x for name, x in named_inputs(visible).items() if name not in flags}
        if bool(always.any()) and len(inputs) == 1:  # tokens of a second input may be padding that it marks itself
            everything = torch.ones(next(iter(inputs.values())).shape[:2], dtype=torch.bool)
            added = always & ~reach(each, visible, set(inputs), everything).own
            if bool(added.any()):
                unread = f"no token reads {int(added.sum())} of {rows.numel()} tokens that the model adds"
                return warned(f"{unread}: does it hide registers?")
    return None


def may_be_mask(label: str, tensor: Tensor) -> bool:
    """Return whether an input may be a mask of any shape: its name says so, or it has truth values, or some of its numbers are -inf."""
    infinite = tensor.is_floating_point() and bool(tensor.isneginf().any())
    return tensor.dim() > 1 and ("mask" in label or tensor.dtype == torch.bool or infinite)
