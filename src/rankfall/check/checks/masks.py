"""The check of masks and padding."""

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from rankfall.check.equal import call_argument, change_named, named_inputs, named_tensors
from rankfall.check.hidden import OTHERS, hidden_tokens, reached_by_hidden
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
    pooled_with,
    reach,
    scores_change,
)
from rankfall.check.recording import RecordedStream
from rankfall.check.unpadded import check_padding
from rankfall.streams.arguments import Arguments
from rankfall.streams.examine import FAILURES
from rankfall.streams.record import tensors_in


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
        states, output = each.states, [tensor for _, tensor in tensors_in(each.output)]
        reached = reached_by_hidden(each.examined, each.flow, hidden, states, output)
        if reached is not None:
            layer, what = reached
            sentence = "{} with {} of {} tokens that attention hides{}".format(
                f"{what} change" if what == OTHERS else f"{what} changes", int(hidden.sum()), hidden.numel(),
                f", from layer {layer} on: does a convolution or a mean read padding?" if what == OTHERS
                else ": is it pooled over padding, or does a decoder lack the mask of its memory?",
            )  # fmt: skip
            return failed(sentence, each.layer_path(layer))
    if result.verdict == PASS or not padding:
        return result
    return passed(f"{int(padding[0][1].sum())} of {padding[0][1].numel()} tokens are hidden, and reach no other")


def judge_inputs(recordings: list[RecordedStream]) -> Result:
    """Return the verdict on the masks, the lengths and the padding among the inputs."""
    arguments, model = recordings[0].examined.arguments, recordings[0].examined.model
    masks, lengths = masks_of(arguments, model), lengths_of(arguments, model)
    accounted = [torch.zeros(each.states[0].shape[:2], dtype=torch.bool) for each in recordings]
    visible = arguments  # the arguments with nothing hidden
    results: list[Result] = []
    for mask in masks:
        try:
            result, value, owns = judge_mask(recordings, [mask])
            twins = [other for other in masks if other.tensor.shape == mask.tensor.shape]
            twins = [other for other in twins if torch.equal(other.tensor, mask.tensor)]
            if result.verdict == FAIL and len(twins) > 1:  # one mask for the encoder, and the same one for its memory
                result, value, owns = judge_mask(recordings, twins)
        except FAILURES:  # the model refuses the changed inputs
            continue
        if result.verdict == FAIL:
            return result
        results.append(result)
        if value is not None:
            accounted = [rows | own for rows, own in zip(accounted, owns)]
            shown = mask.hiding(torch.zeros(mask.shape, dtype=torch.bool), value)
            changed = change_named(visible, {mask.name}, partial(lambda new, _: new, shown))
            visible = changed or visible
    for mask in lengths:
        result, owns = judge_lengths(recordings, mask)
        if result.verdict == FAIL:
            return result
        results.append(result)
        accounted = [rows | own for rows, own in zip(accounted, owns)]
        visible = change_named(visible, {mask.name}, lambda x: torch.full_like(x, int(x.max()))) or visible
    passes, tried = [result for result in results if result.verdict == PASS], {mask.name for mask in (*masks, *lengths)}
    if passes:
        return hidden_beyond(recordings, accounted, visible, tried) or passes[0]
    candidates = [
        name for name, tensor in named_tensors(arguments).items() if may_be_mask(label_of(model, name), tensor)
    ]
    for name in candidates:
        if not any(inverted_changes(recordings, name)):
            return failed(f"{call_argument(name)} changes nothing: the output is the same with all of it inverted")
    if candidates and not set(candidates) <= tried:
        return passed(f"{', '.join(map(call_argument, candidates))} changes the output")
    return results[0] if results else check_padding(recordings[0])


def judge_mask(recordings: list[RecordedStream], masks: list[Mask]) -> tuple[Result, float | None, list[Tensor]]:
    """Hide tokens by masks that are equal. Return the verdict, the value that hides, and the rows (S, T) of each stream that it hides."""
    mask = masks[0]
    arguments, argument = recordings[0].examined.arguments, call_argument(mask.name)
    flags = {each.name for each in masks_of(arguments, recordings[0].examined.model)}
    shown = {value: str(value) if mask.tensor.dtype == torch.bool else f"{value:g}" for value in mask.values}
    if mask.by_head:
        return (
            failed(f"{argument} repeats samples, but the heads of a sample stand together: use repeat_interleave"),
            None,
            [],
        )
    states, outputs = inverted_changes(recordings, mask.name)
    if not states and outputs and not pooled_with(recordings[0], mask):
        if scores_change(recordings, mask.name):
            return failed(f"{argument} changes scores and no state: is it on the axis of queries?"), None, []
        return skipped(f"{argument} changes the output and no state"), None, []

    def hide(hidden: Tensor, value: float) -> Arguments:
        changed = change_named(arguments, {each.name for each in masks}, lambda _: mask.hiding(hidden, value))
        assert changed is not None
        return changed

    names = sorted(holders(arguments, mask.shape, flags))
    if not names:
        return skipped(f"no argument is known to hold the tokens that {argument} hides"), None, []
    steps = torch.arange(mask.shape[1]).expand(mask.shape)
    # a model that turns its mask into lengths cannot hide the middle
    for block in (steps == mask.shape[1] // 2, steps >= mask.shape[1] * 3 // 4):
        # the input and the stream -> what the token in the middle reaches with each value
        trials = {
            (name, number): [reach(each, hide(block, value), {name}, block) for value in mask.values]
            for number, each in enumerate(recordings)
            for name in names
        }
        trials = {key: pair for key, pair in trials.items() if any(each.layer is not None for each in pair)}
        hiding = {key: [each.layer for each in pair].index(None) for key, pair in trials.items() if leaks(pair) is None}
        if hiding:
            break
    if not trials or all(not each.finite for pair in trials.values() for each in pair):
        return skipped(f"no token reads the one in the middle, whatever {argument} is"), None, []
    hidden_names = {name for name, _ in hiding}

    def failure(key: tuple[str, int]) -> Result:
        each, layer = recordings[key[1]], leaks(trials[key]) or 0
        if not any(result.own.any() for result in trials[key]):
            return failed(
                f"{argument} hides no token from {each.flow.name or 'the layers'}: does a decoder lack the mask of its memory?",
                each.layer_path(layer),
            )
        where = f"a token in the layers before layer {layer}, and not in it" if layer > 1 else "no token"
        return failed(
            f"{argument} hides {where}: others read it, whether it is {' or '.join(shown.values())} there",
            each.layer_path(layer),
        )

    if not hiding:
        known = any(word in mask.label for word in HIDES) and not mask.square
        ends = [hidden for value in mask.values if bool((hidden := mask.hidden(value)).any())]
        if known or (len(ends) > 1 and all(map(at_an_end, ends))):
            inside = [key for key, pair in trials.items() if bool(pair[0].own.any())]
            return failure((inside or list(trials))[0]), None, []
        return skipped(f"{argument} hides no token, whether it is {' or '.join(shown.values())} there"), None, []
    for key in trials:
        if key[0] in hidden_names and key not in hiding:
            return failure(key), None, []
    if len(set(hiding.values())) > 1:
        number = next(key[1] for key, hides in hiding.items() if hides != next(iter(hiding.values())))
        return failed(f"{argument} is inverted in {recordings[number].flow.name}"), None, []
    hides = next(iter(hiding.values()))
    value = mask.values[hides]
    example = mask.hidden(value)
    share = int(example.sum())
    entered = any(bool(pair[hides].own.any()) for pair in trials.values())
    if share > example.numel() / 2 and entered and not mask.square:
        shifted = any(
            int(each.hidden.sum()) == example.numel() - share for each in recordings if each.hidden is not None
        )
        sentence = (
            "hides other tokens than it says: is it shifted, as by tokens in front?" if shifted
            else f"hides {share} of {example.numel()} tokens of the example: is it inverted?"
        )  # fmt: skip
        return failed(f"{argument} {sentence}"), None, []
    if share:
        patterns, calls = [example], [arguments]
    else:
        right = torch.arange(mask.shape[1]) >= mask.shape[1] - 1 - torch.arange(mask.shape[0])[:, None] % 2
        patterns = [right, right.flip(1)]
        calls = [hide(tokens, value) for tokens in patterns]
    for tokens, call in zip(patterns, calls):
        reached = [reach(each, call, hidden_names, tokens) for each in recordings]
        result = reaches_others(argument, recordings, reached, tokens)
        if result is None:
            sentence = f"{argument}: {shown[value]} hides a token from all others"
            return passed(sentence), value, [each.rows_of(tokens) for each in reached]
    assert result is not None
    return result, None, []


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
            sentence = f"{OTHERS} change with {tokens}, from layer {result.layer} on: {cause}"
            return failed(sentence, each.layer_path(result.layer))
    if output_reached(reached, hidden):
        return failed(f"the output reads {tokens}, and no other token does: is it pooled over padding?")
    return None


def judge_lengths(recordings: list[RecordedStream], mask: Mask) -> tuple[Result, list[Tensor]]:
    """Change the tokens behind the lengths of samples, or before them if padding is on the left."""
    arguments, argument = recordings[0].examined.arguments, call_argument(mask.name)
    lengths = mask.tensor.flatten()
    if int(lengths.min()) == mask.shape[1]:
        lengths = lengths - 1 - torch.arange(len(lengths)) % 2
        changed = change_named(arguments, {mask.name}, lambda x: lengths.reshape(x.shape))
        assert changed is not None
        arguments = changed
    behind = torch.arange(mask.shape[1]) >= lengths[:, None]
    flags = {each.name for each in masks_of(arguments, recordings[0].examined.model)}
    failures = []
    for hidden in (behind, behind.flip(1)):
        try:
            reached = [reach(each, arguments, holders(arguments, mask.shape, flags), hidden) for each in recordings]
        except FAILURES:
            return skipped(f"the model fails with other {argument}"), []
        if not any(result.arrives for result in reached):
            return skipped(f"no token behind {argument} reaches the layers"), []
        result = reaches_others(argument, recordings, reached, hidden)
        if result is None:
            sentence = f"{argument}: {int(hidden.sum())} of {hidden.numel()} tokens are hidden, and reach no other"
            return passed(sentence), [each.rows_of(hidden) for each in reached]
        failures.append(result)
    return failures[0], []


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
            always = hidden_tokens(replace(each.examined, arguments=visible), each.flow, *each.hidden.shape)
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
                return warned(
                    f"no token reads {int(added.sum())} of {rows.numel()} tokens that the model adds: does it hide registers?"
                )
    return None


def may_be_mask(label: str, tensor: Tensor) -> bool:
    """Return whether an input may be a mask of any shape: its name says so, or it has truth values, or some of its numbers are -inf."""
    infinite = tensor.is_floating_point() and bool(tensor.isneginf().any())
    return tensor.dim() > 1 and ("mask" in label or tensor.dtype == torch.bool or infinite)
