"""A pass of a model that is observed and edited along one residual stream.

At every addition state + value, `edit(branch, state, value)` returns the sum to continue with, or None for the model's own sum, which the
original operation then computes. The model does not change: a mode intercepts the additions, and hooks track the calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from traceback import clear_frames
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from rankfall.errors import RankfallError
from rankfall.streams.arguments import Arguments, call_model
from rankfall.streams.flow import (
    Branch,
    BranchPart,
    Edits,
    End,
    Enough,
    Flow,
    StreamEntry,
    alike_rows,
    mix_variants,
    zero_product,
)
from rankfall.streams.frames import Call, Frames
from rankfall.streams.record import (
    ADDS,
    FUSED_ATTENTION,
    IN_PLACE,
    PRODUCTS,
    SOFTMAX,
    is_fused,
    map_tensors,
    put,
    summands_of,
    tensors_in,
)  # fmt: skip
from rankfall.streams.trace import ADD, ANY, ATTEND, PRODUCT, addition


class Editor(TorchFunctionMode):
    """Mode that follows one stream while it is active."""

    def __init__(self, flow: Flow, edits: Edits, frames: Frames) -> None:
        super().__init__()
        self.states: dict[int, Tensor] = {}
        self.exits: dict[int, Tensor] = {}
        self.met: set[int] = set()
        self._flow, self._edits, self._frames = flow, edits, frames
        self._branches = {branch.operation: branch for branch in flow.branches}
        self._first = {branch.layer: branch.number for branch in reversed(flow.branches)}
        self._gates = {branch.gate: branch for branch in flow.branches if branch.gate is not None}
        self._gated: dict[int, Tensor] = {}  # number of a branch -> the state before its gate
        self._parts = {part.operation: part for branch in flow.branches for part in branch.parts}
        self._last: Tensor | None = None
        # layer -> the state without its last branch, and for each variant whether it is left out
        self._without: dict[int, tuple[Tensor, Sequence[bool]]] = {}
        self._ends = {end.call: (layer, end) for layer, end in enumerate(flow.ends, 1) if end is not None}
        entry = flow.entry or StreamEntry(None, None, ())
        self._entry, self._entry_part = entry.operation, entry.part
        self._entry_tensor = entry.tensor if entry.operation is None else None
        self._replaced: Tensor | None = None
        self._sunk = -1  # the last layer whose state went to the sink

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        operations = [self._frames.operation(ANY)]
        if self._entry_tensor is not None and self._edits.enter is not None:
            args, kwargs = self._replace_entry(args, kwargs)
        if func in ADDS:
            operation = self._frames.operation(addition(args, kwargs) if self._flow.shaped else ADD)
            operations.append(operation)
            if operation in self._branches:
                return self._addition(self._branches[operation], func, args, kwargs)
            if operation in self._parts:
                return self._part(self._parts[operation], func, args, kwargs)
        elif func in SOFTMAX or is_fused(func):
            operation = self._frames.operation(ATTEND)
            operations.append(operation)
            visible = func in SOFTMAX or func in FUSED_ATTENTION  # FlexAttention computes its weights out of sight
            if visible and self._edits.attend is not None and operation in self._flow.attends:
                return self._edits.attend(self._flow.attends[operation], func, args, kwargs)
        elif func in PRODUCTS:
            operation = self._frames.operation(PRODUCT)
            operations.append(operation)
            if operation is not None and operation.call.module.rpartition(".")[2] in self._edits.identity:
                return args[0]
            if operation in self._edits.unused:
                return zero_product(func, args, kwargs)
        whole = operations[0]
        if whole in self._gates:
            factors = [tensor for _, tensor in tensors_in((args, kwargs))]
            self._gated[self._gates[whole].number] = factors[self._gates[whole].factor]
        if self._edits.score is not None and whole in self._flow.scores:
            self._edits.score(self._flow.scores[whole], [tensor for _, tensor in tensors_in((args, kwargs))][-2:])
        result = self._edits.compute(func, args, kwargs)
        if self._entry is not None and self._entry in operations and self._edits.enter is not None:
            returned = list(tensors_in(result))
            if self._entry_part < len(returned):
                path, tensor = returned[self._entry_part]
                result = put(result, path, self._edits.enter(tensor))
        return result

    def _replace_entry(self, args: Any, kwargs: Any) -> Any:
        """Return the arguments with the tensor that begins the stream replaced."""
        entry, enter = self._entry_tensor, self._edits.enter
        assert entry is not None and enter is not None

        def change(tensor: Tensor) -> Tensor:
            if tensor is not entry:
                return tensor
            if self._replaced is None:
                self._replaced = enter(entry)
            return self._replaced

        return map_tensors(tuple(args), change), map_tensors(kwargs, change)

    def _addition(self, branch: Branch, func: Any, args: Any, kwargs: Any) -> Any:
        """Record the state, and return the edited sum of a residual addition."""
        pair = summands_of(args, kwargs)
        if pair is None:
            raise RankfallError(
                f"the addition of {branch.name} in layer {branch.layer} does not add two tensors in this pass"
            )
        state, value = pair if branch.skip == 0 else (pair[1], pair[0])
        in_place = func.__name__ in IN_PLACE
        if in_place:
            state, value = state.clone(), value.clone()
        if self._first[branch.layer] == branch.number:
            self._keep(branch.layer - 1, self._gated.get(branch.number, state))
        self.met.add(branch.number)
        alpha = kwargs.get("alpha", 1)
        # `alpha` multiplies the second operand: the branch, or the state
        weighted = value * alpha if alpha != 1 and branch.skip == 0 else value
        self._without.pop(branch.layer, None)
        dropped = self._edits.drop(branch) if self._edits.drop is not None else ()
        total = state if dropped and all(dropped) else None
        if total is None and self._edits.edit is not None:
            total = self._edits.edit(branch, state, weighted)
        if any(dropped):
            self._without[branch.layer] = (state, dropped)
            if total is None:
                total = state + weighted
            total = mix_variants(total, state, dropped, self._edits.axis)
        if total is not None and not total.is_contiguous() and pair[0].is_contiguous():
            total = total.contiguous()  # like a sum: later operations may view it in another shape
        if total is None:
            total = func(*args, **kwargs)
        elif in_place and not (self._edits.copies and func.__name__ == "__iadd__"):
            total = pair[0].copy_(total)
        self._last = total
        self._leave_layer(branch.layer, total)
        self._stop_if_done()
        return total

    def _stop_if_done(self) -> None:
        """End a partial pass after its last addition."""
        if self._edits.partial and len(self.met) == len(self._flow.branches):
            raise Enough

    def _part(self, part: BranchPart, func: Any, args: Any, kwargs: Any) -> Any:
        """Return the sum of two parts of a branch, without the part that mixes no tokens where it is left out."""
        pair = summands_of(args, kwargs)
        assert pair is not None
        if self._edits.join is not None:
            self._edits.join(part, *pair)
        dropped = self._edits.drop_parts
        if part.drop is None or not any(dropped):
            return func(*args, **kwargs)
        operand, in_place = pair[1 - part.drop], func.__name__ in IN_PLACE
        if all(dropped):
            return pair[0].copy_(operand) if in_place and operand is not pair[0] else operand
        total = mix_variants(pair[0] + pair[1], operand, dropped, self._edits.axis)
        return pair[0].copy_(total) if in_place else total

    def leave(self, call: Call, inputs: Any, output: Any) -> Any:
        """Record or replace the state that leaves a layer; `Frames` calls this. Its own arithmetic is not intercepted."""
        layer, end = self._ends.get(call, (0, None))
        if end is None:
            return None
        with torch._C.DisableTorchFunction():  # type: ignore[attr-defined]
            if not self._flow.skips:
                output = self._block(self._flow.branches[layer - 1], end, inputs, output)
            outputs = dict(tensors_in(output))
            without, dropped = self._without.pop(layer, (None, ()))
            if without is not None and end.path in outputs and alike_rows(without, outputs[end.path]):
                without = without.reshape(outputs[end.path].shape)
                outputs[end.path] = mix_variants(outputs[end.path], without, dropped, self._edits.axis)
                output = put(output, end.path, outputs[end.path])
            if end.path in outputs:
                self._leave_layer(layer, outputs[end.path])
                if layer == self._flow.depth:
                    self._keep(layer, outputs[end.path])
            return output

    def _keep(self, layer: int, state: Tensor) -> None:
        """Store the state of a layer, or pass it to the sink."""
        shape = self._flow.shape
        if len(shape) == 3 and tuple(state.shape) == (shape[1], shape[0], shape[2]) != shape:
            state = state.transpose(0, 1)  # an addition in (B, T, D) of a stream in (T, B, D)
        if self._edits.sink is None:
            self.states[layer] = state
        else:
            self._edits.sink(layer, state)
            self._sunk = layer

    def _leave_layer(self, layer: int, state: Tensor) -> None:
        if self._edits.sink is None:
            self.exits[layer] = state

    def _block(self, branch: Branch, end: End, inputs: Any, output: Any) -> Any:
        """Edit a layer without additions: its input is the state, its output the branch."""
        state = next((tensor for _, tensor in tensors_in(inputs)), None)
        value = dict(tensors_in(output)).get(end.path)
        if state is None or value is None:
            return output
        if state is self._entry_tensor and self._replaced is not None:
            state = self._replaced  # the layer received the input, but its operations read the replacement
        self.met.add(branch.number)
        self._keep(branch.layer - 1, state)
        total = self._edits.edit(branch, state, value) if self._edits.edit is not None else None
        self._last = value if total is None else total
        self._stop_if_done()
        return output if total is None else put(output, end.path, total)

    def finish(self) -> list[Tensor]:
        """Return the states of all layers. Raise an error unless every addition of the stream took place."""
        missing = [branch for branch in self._flow.branches if branch.number not in self.met]
        if missing:
            raise RankfallError(
                f"{len(missing)} of {len(self._flow.branches)} residual additions did not happen in this pass; first: "
                f"{missing[0].name} of layer {missing[0].layer}: does the model do something else each time?"
            )
        if self._flow.depth not in (*self.states, self._sunk):
            assert self._last is not None
            self._keep(self._flow.depth, self._last)
        if self._edits.sink is not None:
            return []
        return [self.states[layer] for layer in range(self._flow.depth + 1)]


class BranchValues(NamedTuple):
    """One addition of a pass, in the model's own shape."""

    branch: Branch
    state: Tensor
    value: Tensor  # of the branch
    total: Tensor


@dataclass
class PassResult:
    """The results of a pass."""

    states: list[Tensor] = field(default_factory=list)  # of layers 0 .. L, in the model's own shape
    output: Any = None
    # layer -> the tensor that leaves it and that later layers read
    exits: dict[int, Tensor] = field(default_factory=dict)


def run_through(model: nn.Module, arguments: Arguments, flow: Flow, edits: Edits, *, grad: bool = False) -> PassResult:
    """Run one pass with edits. With `grad`, its tensors can be differentiated."""
    with torch.set_grad_enabled(grad), Frames(model) as frames:
        editor = Editor(flow, edits, frames)
        frames.on_exit, output = editor.leave, None
        try:
            with editor:
                output = call_model(model, arguments)
        except Enough as end:
            clear_frames(end.__traceback__)  # or the pass's tensors stay in memory until Python looks for cycles
            if not editor.met:
                return PassResult()
    return PassResult(editor.finish(), output, editor.exits)


def branch_values(model: nn.Module, arguments: Arguments, flow: Flow) -> list[BranchValues]:
    """Return all additions of the unedited model, in the order of the pass."""
    values: list[BranchValues] = []

    def keep(branch: Branch, state: Tensor, value: Tensor) -> None:
        total = state + value if flow.skips else value.clone()
        values.append(BranchValues(branch, state.clone(), value.clone(), total))

    run_through(model, arguments, flow, Edits(edit=keep))
    return values
