"""The check of samples that depend on each other."""

import torch
from torch import Tensor

from rankfall.check.equal import distinct_rows
from rankfall.check.named import Result, failed, named, passed, skipped, warned
from rankfall.check.passes import changed_outputs, changed_rows
from rankfall.check.reads import is_triangle
from rankfall.check.recording import RecordedStream
from rankfall.streams.axes import differs
from rankfall.streams.examine import alike_outputs
from rankfall.streams.flow import Branch
from rankfall.streams.record import tensors_in


@named("samples-independent")
def samples_independent(recording: RecordedStream) -> Result:
    """Do the other samples of a batch leave a sample alone?

    In one trial the last sample of the inputs becomes a copy of the first; in another the first sample of the first state becomes noise.
    States and output of unchanged samples must stay the same up to rounding (1e-8 of the largest number in float64), and the copy must
    have the states of its original. A norm over the batch, expert choice and attention over the wrong axis fail.
    """
    flow, arguments = recording.flow, recording.examined.arguments
    tensors, tokens = arguments.tensors(), flow.layout.tokens
    samples = recording.states[0].shape[0]
    # The axis of samples in the inputs: 1 in the inputs (1, B, T, D) of a configuration's network, whose first axis is that of members.
    axis = int(samples > 1 and all(tensor.dim() > 2 and len(tensor) == 1 for tensor in tensors))
    sizes = (recording.report.tokens, samples)
    tokens_first = [tensor for tensor in tensors if tokens == (axis,) and tensor.shape[axis : axis + 2] == sizes]
    batched = [x for x in tensors if samples > 1 and x.dim() > axis and x.shape[axis] == samples]
    # not tensors[0]: positions or a mask without samples may come before it
    first = (tokens_first or batched or tensors)[0]
    axis += bool(tokens_first)
    count = first.shape[axis] if first.dim() else 1
    joined = first.dim() > 1 and first.shape[0] * first.shape[1] == recording.report.tokens
    if count > 1 and recording.report.samples == 1 and (joined or (len(tokens) > 1 and 0 in tokens)):
        verdict = warned if first.is_floating_point() else failed
        return verdict(f"tokens of all {count} samples are mixed: the first axis of the inputs is one of tokens")
    if samples < 2:
        return skipped("the example has one sample")
    # Shapes change in layers that mix along several axes in turn, where no axis separates samples.
    resized = len({state.shape for state in recording.states}) > 1
    if flow.touching and not resized:
        layer = int(flow.touching.removeprefix("layer "))
        return failed(f"sample 1 changes other samples from {flow.touching} on", recording.layer_path(layer))

    def copy_first(tensor: Tensor) -> Tensor:
        if tensor.dim() <= axis or tensor.shape[axis] != count or is_triangle(tensor):
            return tensor
        changed = tensor.clone()
        changed.select(axis, -1).copy_(tensor.select(axis, 0))
        return changed

    copied = arguments.map(copy_first)
    after = recording.run(copied)
    states = [] if resized else after.states
    changes = changed_rows(states, recording.states)
    shares = [float(changed.double().mean()) for changed in changes]
    first_mixing = next((layer for layer, share in enumerate(shares) if share > 1 / count + 1e-9), None)
    same_count = samples == count
    # a mask (B H, T, T) is not copied with its sample
    copy_complete = same_count and not any(x.dim() and len(x) > count and len(x) % count == 0 for x in tensors)
    for layer, (state, changed) in enumerate(zip(states, changes)):
        where = f"in layer {layer}" if layer else "before the first layer"
        if same_count and bool(changed[:-1].any()):
            return failed(f"changing sample {count} changes sample 1 {where}", recording.layer_path(layer))
        if (same_count and not layer if tokens_first else copy_complete) and bool(differs(state[-1], state[0]).any()):
            if tokens_first:
                causal = any(flow.causal for flow in recording.examined.flows)
                like_mask = "as the causal mask does, " * causal
                remedy = "add them along the first" if causal else "set batch_first=True"
                found = f"layers mix the first axis of the inputs, {like_mask}and positions lie along the second"
                return failed(f"{found}: {remedy}?")
            sentence = f"a copy of sample 1 differs from it {where}: does its place in the batch matter?"
            return failed(sentence, recording.layer_path(layer))
        if layer == first_mixing and first.dim() > 1 and len(state) != first.shape[1]:
            sentence = f"changing sample {count} changes {shares[layer]:.0%} of all tokens {where}"
            return failed(sentence, recording.layer_path(layer))
    outputs = {path: x for path, x in changed_outputs(after.output, recording.output).items() if x.dim() > 1}
    by_sample = [changed.movedim(axis, 0) for changed in outputs.values() if changed.shape[axis] == count]
    # scores of pairs of samples, as in CLIP: the last column belongs to the last sample
    by_sample = [changed[:, :-1] if changed.shape == (count, count) else changed for changed in by_sample]
    if any(bool(changed[:-1].any()) for changed in by_sample):
        return failed(f"changing sample {count} changes the output of sample 1, behind the last layer")
    for changed in outputs.values():
        if count not in changed.shape and bool(changed.flatten(1).any(1).all()):
            output = f"an output {tuple(changed.shape)} has no axis of {count} samples"
            return warned(f"{output}, and all of it changes with one: is it pooled over samples?")
    equal = all(torch.equal(tensor, copy) for tensor, copy in zip(tensors, copied.tensors()))
    moved = any(bool(changed.any()) for changed in outputs.values())
    before = dict(tensors_in(recording.output))
    unchanged = not moved and any(bool(before[path].any()) for path in [*outputs][:1])
    if not equal and unchanged and reads_states(recording):
        cause = "does it read a token that sees none of them, or x[0] instead of x[:, 0]?"
        return warned(f"the output of sample {count} stays the same with other inputs: {cause}")
    if equal:
        noise = f"noise in sample 1 changes no other in {flow.depth} layers"
        return passed(f"{noise}; the first and last sample of the inputs are equal")
    if tokens_first and not flow.causal and not placed_along_first(recording, tokens_first):
        mixed = f"layers mix the first axis of the inputs {tuple(first.shape)}"
        return warned(f"{mixed}: right if it holds tokens, else set batch_first=True")
    return passed(f"changing sample {count} changes nothing in the others, in {flow.depth} layers and the output")


def reads_states(recording: RecordedStream) -> bool:
    """Return whether the output changes with the last state. If the last map is zero, it does not."""
    flow = recording.flow

    def edit(branch: Branch, state: Tensor, value: Tensor) -> Tensor | None:
        if branch.number < len(flow.branches) - 1:
            return None
        return torch.randn(value.shape, generator=torch.Generator().manual_seed(0)).to(value)

    return not alike_outputs(recording.run(edit=edit).output, recording.output)


def placed_along_first(recording: RecordedStream, tokens_first: list[Tensor]) -> bool:
    """Return whether positions differ along the first axis: the first state of inputs (T, B) of one repeated token has distinct rows."""
    chosen = {tensor for tensor in tokens_first if tensor.dtype != torch.bool}
    call = recording.examined.arguments.map(lambda x: x[:1].expand_as(x).clone() if x in chosen else x)
    return distinct_rows(recording.run(call).states[0][0]) > 1
