"""The check of samples that depend on each other."""

import torch
from torch import Tensor

from rankfall.check.named import Result, failed, named, passed, skipped, warned
from rankfall.check.recording import RecordedStream
from rankfall.streams.arguments import first_size
from rankfall.streams.axes import differs
from rankfall.streams.edits import Edits
from rankfall.streams.passes import run_through
from rankfall.streams.record import tensors_in


@named("samples-independent")
def samples_independent(seen: RecordedStream) -> Result:
    """Do the other samples of a batch leave a sample alone?

    The last sample of the inputs becomes a copy of the first, and the first sample of the first state becomes noise. All states and the
    output of the samples that were not changed must stay the same up to rounding (1e-8 of the largest number in float64), and the copy must
    have the states of its original. A norm over the
    batch, expert choice and attention over the wrong axis fail.
    """
    flow, arguments = seen.flow, seen.examined.arguments
    count = first_size(arguments)
    first, axes = arguments.tensors()[0], flow.layout.tokens
    flat = first.dim() > 1 and seen.report.samples == 1 and first.shape[0] * first.shape[1] == seen.report.tokens
    if count > 1 and (flat or (len(axes) > 1 and 0 in axes and seen.report.samples == 1)):
        verdict = warned if first.is_floating_point() else failed
        return verdict(f"tokens of all {count} samples are mixed: the first axis of the inputs is one of tokens")
    if seen.states[0].shape[0] < 2:
        return skipped("the example has one sample")
    resized = (
        len({state.shape for state in seen.states}) > 1
    )  # layers along several axes in turn, which no sample tells apart
    if flow.touching and not resized:
        layer = int(flow.touching.removeprefix("layer "))
        return failed(f"sample 1 changes other samples from {flow.touching} on", seen.layer_path(layer))

    def copy_first(one: Tensor) -> Tensor:
        changed = one.clone()
        if one.dim() and one.shape[0] == count:
            changed[-1] = changed[0]
        return changed

    after = run_through(seen.examined.model, arguments.map(copy_first), flow, Edits())
    states = [] if resized else [flow.layout.to_rows(state) for state in after.states]
    moved = [differs(state, before).any(-1) for state, before in zip(states, seen.states)]  # (S, T)
    wide = next((layer for layer, one in enumerate(moved) if float(one.double().mean()) > 1 / count + 1e-9), None)
    if wide is not None and flow.layout.tokens == (0,):
        return warned(
            "tokens lie along the first axis of the states: right if inputs are (tokens, samples), else samples are mixed"
        )
    alike = seen.states[0].shape[0] == count
    # a mask (B * H, T, T) is not copied with its sample
    whole = alike and not any(
        one.dim() and one.shape[0] > count and one.shape[0] % count == 0 for one in arguments.tensors()
    )
    for layer, (state, one) in enumerate(zip(states, moved)):
        where = f"in layer {layer}" if layer else "before the first layer"
        if alike and bool(one[:-1].any()):
            return failed(f"changing sample {count} changes sample 1 {where}", seen.layer_path(layer))
        if whole and flow.layout.tokens != (0,) and bool(differs(state[-1], state[0]).any()):
            return failed(
                f"a copy of sample 1 differs from it {where}: does its place in the batch matter?",
                seen.layer_path(layer),
            )
        if layer == wide and first.dim() > 1 and len(state) != first.shape[1]:
            return failed(
                f"changing sample {count} changes {float(one.double().mean()):.0%} of all tokens {where}",
                seen.layer_path(layer),
            )
    for (_, one), (_, other) in zip(tensors_in(after.output), tensors_in(seen.output)):
        batched = one.dim() > 1 and one.shape == other.shape and one.shape[0] == count and one.is_floating_point()
        if batched and bool(differs(one[:-1], other[:-1]).any()) and not torch.equal(one, other):
            return failed(f"changing sample {count} changes the output of sample 1, behind the last layer")
    return passed(f"changing sample {count} changes nothing in the others, in {flow.depth} layers and the output")
