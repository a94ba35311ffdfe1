"""Follow a pass along its residual stream, from addition to addition. Its layers and states are those of `rankfall check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError
from rankfall.streams.editor import Editor
from rankfall.streams.flow import Branch, Edits
from rankfall.streams.frames import Frames
from rankfall.streams.names import inner_modules
from rankfall.streams.record import summands_of, tensors_in
from rankfall.streams.trace import ADD
from rankfall.watch.attention import AttentionListener
from rankfall.watch.layers import WatchedLayers

# Functions that hold attention weights; nothing else is listened to, as that takes time.
HEARD = frozenset({"softmax", "scaled_dot_product_attention", "multi_head_attention_forward"})
UNITS = frozenset({"relu", "relu_", "gelu", "silu"})
Keep = Callable[[int, Tensor, AttentionListener | None], None]


class FollowedPass(Editor):
    """Follow the pass in progress. `keep(layer, state, attention)` receives the state (B, T, D) and the listener of each layer."""

    def __init__(self, layers: WatchedLayers, samples: int, real_of: Callable[[Tensor], Any], keep: Keep) -> None:
        assert layers.flow is not None and layers.root is not None
        self.layers, self.samples, self.real_of, self.keep = layers, samples, real_of, keep
        self.layout, self.begun, self.broken = layers.flow.layout, False, False
        self.error: RankfallError | None = None  # of this package's own code, to be raised after the pass
        self.listener: AttentionListener | None = None
        self.attention: dict[int, AttentionListener] = {}
        self.last = {branch.layer: branch.number for branch in layers.flow.branches}
        self.frames = Frames(layers.root, on_exit=self.leave)
        edits = Edits(edit=self.see, enter=self.enter, sink=self.sink, compute=self.hear)
        super().__init__(layers.flow, edits, self.frames)
        self._given = None  # a tensor of the recorded pass

    def begin(self, module: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> None:
        """Begin inside the call of a module, whose hook calls this."""
        tensors = [tensor for _, tensor in tensors_in((args, dict(kwargs)))]
        if self.layout.groups > 1 and tensors:
            self.layout = replace(self.layout, groups=tensors[0].shape[0])
        self.begun = True
        self.frames.__enter__()
        name = next((name for name, inner in inner_modules(self.frames.model) if inner is module), None)
        if name is not None:
            self.frames.resume(name)
        self.__enter__()
        entry = self._flow.entry
        if entry is not None and entry.operation is None:  # the stream begins with an input
            candidates = [
                tensor for tensor in tensors if tensor.dim() == len(entry.shape) and tensor.is_floating_point()
            ]
            if candidates:
                self.enter(candidates[0])

    def end(self, complete: bool) -> str:
        """End the pass. Return why it is not the recorded one, or '' if it is or is not to be `complete`."""
        if not self.begun:
            return ""
        self.begun, why = False, ""
        self.__exit__(None, None, None)
        if complete:
            try:
                self.finish()
            except RankfallError as error:
                why = str(error)
            counted = {call: self.frames.counts.get(call, Counter())[ADD] for call in self.layers.additions}
            if self.broken or counted != self.layers.additions:
                why = why or "its additions in training are not those in evaluation"
        self.listener = self._last = None  # states hold their gradients' graph
        self._gated.clear()
        return why

    def detach(self) -> None:
        self.end(complete=False)
        self.frames.__exit__()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.compiler.is_compiling():  # a function that is compiled stays as it is
            return func(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)

    def _addition(self, branch: Branch, func: Any, args: Any, kwargs: Any) -> Any:
        if summands_of(args, kwargs) is None:
            self.broken = True
            return func(*args, **kwargs)
        return super()._addition(branch, func, args, kwargs)

    def enter(self, tensor: Tensor) -> Tensor:
        """Listen to the attention of the first layer."""
        self.listen(tensor)
        return tensor

    def see(self, branch: Branch, state: Tensor, value: Tensor) -> None:
        """Listen to the next layer's attention after the last addition of a layer."""
        if self.last[branch.layer] == branch.number:
            if self.listener is not None:
                self.attention[branch.layer] = self.listener
            self.listen(state)

    def listen(self, state: Tensor) -> None:
        """Begin to listen to the attention of the next layer, which reads this state."""
        # Modes of other watchers do not see what this one computes.
        with torch._C.DisableTorchFunction():  # type: ignore[attr-defined]
            try:
                rows = self.layout.to_rows(state.detach())
                real, _ = self.real_of(rows)
                self.listener = AttentionListener(len(rows), rows.shape[1], self.samples, real)
            except RankfallError as error:
                self.error = error

    def hear(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function in the model's number format, and listen to it."""
        name = getattr(func, "__name__", "")
        if self.listener is None or name not in HEARD:
            output = func(*args, **kwargs)
            if self.listener is not None and name in UNITS:
                with torch._C.DisableTorchFunction():  # type: ignore[attr-defined]
                    self.listener.keep_units(output)
            return output
        with self.listener:
            return func(*args, **kwargs)

    def sink(self, layer: int, state: Tensor) -> None:
        """Pass on the state of a layer, and its listener."""
        with torch._C.DisableTorchFunction():  # type: ignore[attr-defined]
            try:
                self.keep(layer, self.layout.to_rows(state.detach()), self.attention.pop(layer, None))
            except RankfallError as error:
                self.error = self.error or error
