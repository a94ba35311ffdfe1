"""A pass that is measured at its residual additions, for layers that are no modules or that return more than their state.

The finder of `streams/` runs once, on a copy of the model and two samples of its first batch. From then on each measured pass is followed
from addition to addition, so that its layers are those of `rankfall check`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from rankfall.streams.arguments import Arguments, NoStream, first_size
from rankfall.streams.editor import Editor
from rankfall.streams.edits import Edits
from rankfall.streams.examine import examine
from rankfall.streams.flow import Branch, Flow
from rankfall.streams.frames import Frames
from rankfall.streams.record import tensors_in
from rankfall.watch.attention import AttentionListener

SAMPLES = 2  # enough to tell samples from tokens
Keep = Callable[[int, Tensor, AttentionListener | None], None]


def find_flows(model: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> list[Flow]:
    """Return the residual streams of a model, the longest first, found on a copy of it and the first samples of a batch."""
    arguments = Arguments(tuple(args), dict(kwargs))
    batch = first_size(arguments)
    few = arguments.map(lambda one: one[:SAMPLES] if one.dim() and one.shape[0] == batch else one)
    flows = examine(model, few, shaped=False).flows
    if flows[0].around:  # what its layers return is no state
        raise NoStream(flows[0].missing[0])
    return flows


class FollowedPass:
    """A pass in progress. `keep(layer, state, attention)` receives the state (B, T, D) of each layer and what was heard in it."""

    def __init__(
        self, model: nn.Module, flow: Flow, samples: int, real_of: Callable[[Tensor], Any], keep: Keep
    ) -> None:
        self.model, self.flow, self.samples, self.real_of, self.keep = model, flow, samples, real_of, keep
        self.layout, self.begun = flow.layout, False
        self.listener: AttentionListener | None = None
        self.attention: dict[int, AttentionListener] = {}
        self.last = {branch.layer: branch.number for branch in flow.branches}
        self.frames = Frames(model, on_exit=lambda *exit_: self.editor.leave(*exit_))
        edits = Edits(edit=self.see, enter=self.enter, sink=self.sink, compute=call)
        self.editor = Editor(flow, edits, self.frames)

    def begin(self, module: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> None:
        """Begin inside the call of a module, whose hook calls this."""
        given = [tensor for _, tensor in tensors_in((args, dict(kwargs)))]
        if self.layout.groups > 1 and given:
            self.layout = replace(self.layout, groups=given[0].shape[0])
        self.begun = True
        self.frames.__enter__()
        name = next((name for name, one in self.model.named_modules() if one is module), None)
        if name is not None:
            self.frames.resume(name)
        self.editor.__enter__()
        entry = self.flow.entry
        if entry is not None and entry.operation is None:  # the stream begins with an input
            alike = [one for one in given if one.dim() == len(entry.shape) and one.is_floating_point()]
            if alike:
                self.enter(alike[0])

    def end(self, complete: bool) -> None:
        """End the pass. If it is `complete`, every addition must have taken place."""
        if not self.begun:
            return
        self.close(0)
        self.editor.__exit__(None, None, None)
        try:
            if complete:
                self.editor.finish()
        finally:
            self.frames.__exit__()

    def enter(self, tensor: Tensor) -> Tensor:
        """Listen to the attention of the first layer."""
        self.listen(self.layout.to_rows(tensor.detach()))
        return tensor

    def see(self, branch: Branch, state: Tensor, value: Tensor) -> None:
        """Listen to the next layer's attention after the last addition of a layer."""
        if self.last[branch.layer] == branch.number:
            self.close(branch.layer)
            self.listen(self.layout.to_rows(state.detach()))

    def listen(self, rows: Tensor) -> None:
        self.close(0)
        real, _ = self.real_of(rows)
        self.listener = AttentionListener(len(rows), rows.shape[1], self.samples, real)
        self.listener.__enter__()

    def close(self, layer: int) -> None:
        """End listening, and keep what was heard as that of a layer."""
        if self.listener is not None:
            self.listener.__exit__(None, None, None)
            self.attention[layer] = self.listener
            self.listener = None

    def sink(self, layer: int, state: Tensor) -> None:
        self.keep(layer, self.layout.to_rows(state.detach()), self.attention.pop(layer, None) if layer else None)


def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function in the model's own number format."""
    return func(*args, **kwargs)


def find_flow_elsewhere(model: nn.Module, called: tuple[Any, Mapping[str, Any]], blocks: Sequence[str]) -> Flow | None:
    """Return the first residual stream if none of the streams has a block as a layer, or None."""
    try:
        flows = find_flows(model, *called)
    except Exception:  # whatever a model raises as a copy on the CPU
        return None
    return None if any(set(flow.layers) & set(blocks) for flow in flows) else flows[0]
