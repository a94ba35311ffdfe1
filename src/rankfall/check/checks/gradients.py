"""The check of gradients."""

import re
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.check.derivative import (
    ROUNDING,
    STEPS,
    MapOutputs,
    active_outputs,
    describe_outputs,
    differentiate_weights,
    has_silent_part,
    is_unread_end,
    project_pass,
    trained,
    wrong_gradient,
)
from rankfall.check.gradients import attend_scored
from rankfall.check.layer import show_number
from rankfall.check.named import Limit, Result, failed, named, passed, skipped, warned
from rankfall.check.recording import RecordedStream
from rankfall.streams.examine import FAILURES, Examined, plain
from rankfall.streams.frames import Call, Frames
from rankfall.streams.mixing import fill_zero_weights
from rankfall.streams.record import tensors_in

FEWEST_ROWS = 8  # rows of a block that has no gradient in all layers; a few units of a rectifier may be dead by chance

STEEP = Limit(
    10,
    "a gradient of the first state above this multiple of that of the last, or below its inverse, warns",
    "our choice: an optimiser step of the right size for one end is ten times too large or small for the other",
)
BROKEN = Limit(
    1000,
    "above this multiple, or below its inverse, it fails",
    "our choice: bfloat16, with 8 bits, cannot add such gradients",
)


@named("gradients-flow", STEEP, BROKEN)
def gradients_flow(recording: RecordedStream) -> Result:
    """Does the gradient reach every layer and parameter, neither exploding nor vanishing?

    First, the backward pass of the unedited model must run: it fails if an operation in place overwrites what it needs.

    Then each parameter matrix that the forward pass reads must be connected to the output, or to the last state if the output has no
    gradient. A matrix that is not connected is detached and fails, unless it is a part of the last layer that no output needs. Detached
    queries or keys fail, and so does a parameter that `model.parameters()` lacks. A joint matrix fails if a half or a third of its rows has
    no gradient, or the same block of rows in all layers. A branch that returns zero fails if it also gets no gradient in three steps of
    training, as a map of zeros behind a gate of zero. A matrix of the layers warns if the pass does not read it, if its gradient stays zero
    in these steps, as in an expert without tokens, or if it is frozen and its like in another layer is not. So does a tensor that looks
    like weights and is no parameter, and a parameter whose gradient is not the derivative of the output by a central difference, because a
    part of its path is detached.

    The outputs are judged with random weights in place of zeros: a matrix that changes none of them warns, and so does a map behind the
    layers if a half or a third of its outputs, or one of a few, reaches none. Two equal outputs warn, and an output with equal rows,
    unless they differ after three steps of training.

    Last, the gradient of <V, X_L> for random V at the first state is divided by that at the last state. The ratio is steep only if it is
    also steep relative to the states' lengths: states a hundred times as long have gradients a hundred times as small.
    """
    layers, examined, flow = recording.report.layers, recording.examined, recording.flow
    if recording.foreign:
        shapes = ", ".join(str(tuple(parameter.shape)) for parameter in list(recording.foreign)[:2])
        lacking = f"{len(recording.foreign)} parameters are used that model.parameters() lacks, of shapes {shapes}"
        return failed(f"{lacking}: are modules held in a plain list?")
    if overwritten := overwritten_tensor(recording.examined, recording.frozen):
        return failed(*overwritten)
    halves, detached, zero, blocks, unread, frozen = parameters_without(recording)
    judged = recording.used - recording.frozen
    parameters = [(name, x) for name, x in examined.model.named_parameters() if x.is_floating_point()]
    weights: dict[str, Tensor] = {name: weight for name, weight in parameters if name in judged}
    if zero:
        with trained(examined, flow, weights) as silent:
            # attention over states of zero, as where queries of a decoder begin, is not dead
            begins = tuple(f"{recording.path_of(one.branch)}." for one in recording.additions if not one.state)
            zero = [name for name in zero if name in silent and not name.startswith(begins)]
    shut = tuple(f"{recording.path_of(one.branch)}." for one in recording.additions if not one.value)
    dead = [name for name in zero if name.startswith(shut)]
    if halves:
        branches = [flow.branches[number] for number, _ in halves]
        numbers = ", ".join(dict.fromkeys(str(branch.layer) for branch in branches))
        path = recording.path_of(branches[0])
        return failed(f"{halves[0][1]} of layer {numbers} get no gradient: are they detached?", path)
    ends: list[str] = []  # matrices of a last layer that no output needs
    if detached and is_unread_end(examined, detached, recording.used):
        ends += detached
    elif detached:
        found = f"{len(detached)} parameters are used and get no gradient, {detached[0]} first"
        return failed(f"{found}: is it, or what follows it, detached?", detached[0])
    if dead:
        found = f"{len(dead)} parameters of branches that return zero get no gradient, nor in {STEPS} steps, {dead[0]} first"
        return failed(f"{found}: are a gate and the map behind it both zero?", dead[0])
    if blocks:
        found = f"{len(blocks)} joint matrices have a block of rows without gradient, {blocks[0]} first"
        return failed(f"{found}: are queries, keys or values detached?", blocks[0])
    if outputs := describe_outputs(recording, weights, ends):
        return warned(*outputs)
    size, first, last = layers[0].gradient, layers[0].norm, layers[-1].norm
    if size is None:
        return skipped(recording.report.reasons.get("gradients", "the first state cannot be differentiated"))
    if not first:
        return skipped("the first state is zero, and a norm of zeros has any gradient")
    relative = size * (first / last if last else 1.0)  # to the lengths of the states
    sentence = f"{show_number(size)} times as large at the first state as at the last, {show_number(relative)} relative to the states"
    queries = [layer.query_gradient for layer in layers if layer.query_gradient is not None]
    if queries:
        sentence += f"; at queries {min(queries):.1g} to {max(queries):.1g}"
    verb = "explodes" if size > 1 else "vanishes"
    for limit, verdict in ((BROKEN, failed), (STEEP, warned)):
        if is_steep(size, relative, limit):
            return verdict(f"gradient {verb}: {sentence}")
    unlike = "frozen, and its like in another layer is not"
    for names, state in ((unread, "not used"), (zero, "a gradient of zero"), (frozen, unlike)):
        if names:
            return warned(f"{names[0]}{f' and {len(names) - 1} more' * (len(names) > 1)}: {state}", names[0])
    if recording.unregistered:
        names = sorted(recording.unregistered)
        plain_tensor = "looks like random weights and is a plain tensor, which is not trained, saved or moved"
        return warned(f"{names[0]} {plain_tensor}: make it a parameter or a buffer", names[0])
    with fill_zero_weights(examined.model):
        wrong = wrong_gradient(examined, flow, weights)
    if wrong:
        name, gradient, difference = wrong
        numbers = f"({gradient:.3g} along a random direction, and {difference:.3g} by a difference)"
        found = f"the gradient of {name} is not the derivative of the output {numbers}"
        return warned(f"{found}: is a part of its path detached?", name)
    unneeded = f"; no output reads {len(ends)} matrices of the last layer, {ends[0]} first" if ends else ""
    return passed(f"gradient {sentence}{unneeded}")


def is_steep(size: float, relative: float, limit: float) -> bool:
    """Return whether a gradient explodes both absolutely and relative to the lengths of the states, or vanishes both ways."""
    outside = [not 1 / limit <= ratio <= limit for ratio in (size, relative)]
    return all(outside) and (size > 1) == (relative > 1)


def parameters_without(recording: RecordedStream) -> tuple[Any, ...]:
    """Return halves of attention, and five lists of parameters: detached, with zero gradient, with a silent block of rows, unread, frozen.

    A detached matrix is read by the pass, and the output does not depend on it. The other lists hold parameters of the layers; the unread
    include embeddings and positions, too. A half is the branch number of an attention whose queries or keys have no gradient, with the
    word for them. The function to differentiate is a random projection of the output and the last state, since a head that begins
    at zero passes no gradient to the layers.
    """
    model = recording.examined.model
    matrices = {name: x for name, x in model.named_parameters() if x.dim() > 1 and x.is_floating_point()}
    maps = MapOutputs(matrices)
    halves: list[tuple[int, str]] = []

    def score(number: int, pair: list[Tensor], fused: bool = False) -> None:
        detached_names = [name for name, tensor in zip(("queries", "keys"), pair) if not tensor.requires_grad]
        # an adjacency is square, and its product with states may stand where scores do
        square = pair[0].shape[-2:-1] == pair[0].shape[-1:]
        if len(pair) == 2 and len(detached_names) == 1 and (fused or not square):
            halves.append((number, detached_names[0]))

    with torch.enable_grad():
        for weight in matrices.values():
            weight.requires_grad_(True)
        attend = attend_scored(recording.flow, partial(score, fused=True))
        edits = {"attend": attend, "score": score, "compute": maps.compute}
        value, output = project_pass(recording.examined, recording.flow, **edits)
        if not value.requires_grad or not matrices:
            return [], [], [], [], [], []
        gradients = differentiate_weights(value, matrices, retain_graph=True)
        total = sum((tensor.sum() for _, tensor in tensors_in(output) if tensor.requires_grad), torch.zeros(()))
        connected = differentiate_weights(total, matrices) if total.requires_grad else gradients
    modules = dict(model.named_modules())
    containers = {name.rpartition(".")[0] for name in recording.flow.layers}
    lists = {name for name in containers if isinstance(modules.get(name), nn.ModuleList | nn.Sequential)}
    layers = tuple(f"{name}." for name in (*lists, *recording.flow.layers) if name)
    judged = recording.used - recording.frozen
    detached = [name for name, gradient in connected.items() if gradient is None and name in judged]
    known = {name: gradient for name, gradient in gradients.items() if gradient is not None}
    sizes = {name: float(gradient.abs().max()) for name, gradient in known.items()}
    inner = [name for name in known if name.startswith(layers)]
    largest = max(sizes.values(), default=0.0)
    zero = [name for name in inner if sizes[name] <= ROUNDING * largest]
    active_rows = {name: active_outputs(known[name], maps.axes.get(name, 0)) for name in inner}
    joint = ((name, rows, [parts for parts in (2, 3) if len(rows) >= 8 * parts]) for name, rows in active_rows.items())
    blocks = [name for name, rows, parts in joint if has_silent_part(rows, parts)]
    blocks = blocks or list(silent_in_all_layers({name: x for name, x in active_rows.items() if name in maps.axes}))
    tables = {f"{name}." for name, module in modules.items() if isinstance(module, nn.Embedding)}
    unused = [name for name, _ in model.named_parameters() if name not in recording.used]
    unread = [name for name in unused if name.startswith((*layers, *tables)) or "pos" in name]
    # gates of zero, as of ReZero, pass nothing to what lies before them
    closed_gates = any(not addition.value for addition in recording.additions)
    frozen = [name for name in gradients if name in recording.frozen and name.startswith(layers)]
    thawed = {alike_name(name) for name in gradients if name not in recording.frozen}
    frozen = [name for name in frozen if alike_name(name) in thawed]  # a frozen backbone with adapters is meant
    return halves, detached, zero, [] if closed_gates else blocks, unread, frozen


def silent_in_all_layers(maps: dict[str, Tensor]) -> Iterator[str]:
    """Yield the maps whose silent rows are the same in all layers and include a block of FEWEST_ROWS. Values (outputs,)"""
    for _, group in groupby(sorted(maps, key=alike_name), alike_name):
        names = list(group)
        if len(names) > 1 and len({len(maps[name]) for name in names}) == 1:
            rows = torch.stack([maps[name] for name in names])
            runs = [len(list(run)) for active, run in groupby(rows.any(0).tolist()) if not active]
            if max(runs, default=0) >= FEWEST_ROWS and bool(rows.any()) and torch.equal(rows.any(0), rows.all(0)):
                yield from names


def alike_name(name: str) -> str:
    """Return the name of a parameter without the numbers of layers."""
    return re.sub(r"\d+", "#", name)


def overwritten_tensor(examined: Examined, frozen: set[str]) -> tuple[str, str] | None:
    """Return a sentence and a module path if the backward pass of the unedited model fails because of an operation in place."""
    model = examined.model
    outputs: list[tuple[str, Tensor, int]] = []  # module, output, version

    def leave(call: Call, _: Any, output: Any) -> None:
        outputs.extend((call.module, tensor, tensor._version) for _, tensor in tensors_in(output))

    for name, parameter in model.named_parameters():
        parameter.requires_grad_(parameter.is_floating_point() and name not in frozen)
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
    with torch.enable_grad(), Frames(model, on_exit=leave):
        try:
            output = plain(model, examined.arguments)
            ends = [tensor.sum() for _, tensor in tensors_in(output) if tensor.requires_grad]
            if ends and weights:
                torch.autograd.grad(ends, weights, allow_unused=True)
        except FAILURES as error:
            if "modified by an inplace operation" not in str(error):
                return None
            shape = [int(size) for size in re.findall(r"\d+", str(error).partition("Tensor [")[2].partition("]")[0])]
            changed = [
                name
                for name, tensor, version in outputs
                if tensor._version != version and (tensor.numel(), tensor.shape[-1:]) == (prod(shape), (*shape[-1:],))
            ]
            subject = f"the output of {changed[0]}" if changed else f"a tensor of shape {tuple(shape)}"
            path = changed[0] if changed else ""
            return f"backward() fails: {subject} is changed in place after an operation that needs it", path
    return None
