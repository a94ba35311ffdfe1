"""One pass through the layers of a model, with the numbers of each layer computed during the pass.

A pass begins when a module that contains the layers is called, and ends when it returns. The first pass finds the layers. Later passes
are followed along the residual stream, or blocks have hooks that read what they return. If no module that contains blocks is called (a
loop over the blocks in a training step), a pass goes from the first block to the last. Modules have hooks only during a measured pass,
since PyTorch computes some layers differently with hooks. Recomputation in a backward pass (gradient checkpointing) is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError
from rankfall.streams.names import inner_modules
from rankfall.watch import outbox
from rankfall.watch.attention import AttentionListener
from rankfall.watch.compiled import AFTER, BEFORE, ENTER, LEAVE, TracedHooks, is_compiled
from rankfall.watch.followed import FollowedPass
from rankfall.watch.gradients import QueryKeyWeights
from rankfall.watch.hooks import Attached, guarded
from rankfall.watch.layers import WatchedLayers, find_layers, is_sharded, list_blocks, outer_modules, refuse_model
from rankfall.watch.records import CaptureOptions, PassRecord, layer_record, real_tokens
from rankfall.watch.states import REAL, axis_of_batch, check_not_turned, input_states, read_mask, scalar_in, states_of

TRIES = 3  # passes that may differ from the recorded one, as where layers are left out at random


class Capture:
    """Measure the first pass in training mode, or a pass in eval mode if there is none, by hooks that `detach` removes."""

    def __init__(
        self,
        model: nn.Module,
        named: Mapping[str, nn.Module],
        options: CaptureOptions,
        settle: Callable[[WatchedLayers], list[QueryKeyWeights]],
        give_up: Callable[[], None],
        begun: Callable[[], None],
    ) -> None:
        self.model, self.options, self.settle, self.give_up, self.begun = model, options, settle, give_up, begun
        self.named = named  # blocks that the user names
        self.modules: list[nn.Module] = []  # of the model, when its blocks were listed
        self.layers: WatchedLayers | None = None  # until the first pass
        self.weights: list[QueryKeyWeights] = []  # of the layers
        self.axis = 0  # of samples in the states of blocks
        self.followed: FollowedPass | None = None  # until its hooks are removed
        self.failures = 0  # followed passes in a row that were not the recorded one
        self.outer, self.inner = Attached(), Attached()
        self.loose = False  # whether blocks are called outside all modules that contain them
        self.depth, self.passes = 0, [0, 0, 0]  # modules around; number of passes by kind
        self.best: PassRecord | None = None
        self.now: PassRecord | None = None
        self.listeners: list[tuple[int, AttentionListener | None]] = []
        self.armed = False
        self.traced: TracedHooks | None = None  # of a compiled model
        self.list_modules()

    def list_modules(self) -> None:
        """List the blocks, and the modules around them. Layers are found again if a module was added or replaced."""
        modules = list(self.model.modules())
        if modules == self.modules or self.traced is not None or self.loose:
            return
        self.modules, self.layers, inner = modules, None, dict(inner_modules(self.model))
        self.blocks = {name: inner.get(name, block) for name, block in self.named.items()} or list_blocks(self.model)
        self.place = {id(block): number for number, block in enumerate(self.blocks.values())}
        self.ancestors = outer_modules(self.model, self.blocks)
        if self.options.states is not None:
            self.use_blocks(None)
        elif is_sharded(self.model):
            self.use_blocks(RankfallError("its weights are spread over processes"))

    def summary(self) -> str:
        return "layers to be found in the first pass" if self.layers is None else self.layers.summary()

    def use_layers(self, layers: WatchedLayers) -> None:
        self.layers, self.weights = layers, self.settle(layers)

    def use_blocks(self, error: RankfallError | None) -> None:
        """Measure the outputs of blocks from now on. `error`: why layers are not found; None if the user says how to read blocks."""
        if not self.blocks:
            raise refuse_model(self.model, error or RankfallError("it has no list of modules of one class")) from None
        self.axis = axis_of_batch(self.blocks, self.options.batch_axis)
        self.use_layers(WatchedLayers(tuple(self.blocks), tuple(self.blocks.values())))
        if error is not None:
            outbox.LOGGER.warning(
                "watching what blocks return, %s, since the residual stream cannot be followed: %s",
                self.summary(),
                error,
            )

    def loosen(self) -> None:
        """Measure blocks wherever they are called, if layers are not followed."""
        if self.layers is None:
            self.use_blocks(RankfallError("no module that contains them is called"))
        self.loose = self.layers is not None and self.layers.flow is None

    def trace(self) -> None:
        """Attach hooks that the compiler traces, for as long as the model is watched."""
        if self.traced is None:
            if self.layers is None or self.layers.flow is not None:
                self.use_blocks(RankfallError("the model is compiled") if self.options.states is None else None)
            states, names, axis = self.options.states, tuple(self.blocks), self.axis
            self.traced = TracedHooks(
                self,
                self.ancestors,
                tuple(self.blocks.values()),
                lambda args, kwargs: input_states(args, kwargs, states, axis),
                lambda at, output: states_of(output, names[at], states, axis),
                scalar_in,
            )

    def heard(self, event: int, place: int, tensors: list[Tensor | None], kind: int) -> None:
        """Measure what compiled code passes on."""
        if not self.armed:
            return
        tensor, mask = tensors
        if event == ENTER:
            self.depth += 1
            if self.depth == 1:
                self.begin(kind)
            if self.now is not None and mask is not None and self.options.mask is None:
                self.now.real = read_mask(mask, place >= len(REAL))
        elif event == LEAVE:
            self.leave_outer(tensor)
        elif event == BEFORE and self.now is not None:
            self.before_block(place, tensor)
        elif event == AFTER and self.now is not None and self.listeners:
            assert tensor is not None
            self.now.layers.append(layer_record(place, tensor, self.listeners.pop()[1], self.now, self.options))

    def heard_attention(self, arguments: Mapping[str, Any]) -> None:
        if self.now is not None and self.listeners and self.listeners[-1][1] is not None:
            self.listeners[-1][1].keep_fused(arguments)

    def attach(self) -> None:
        """Measure passes from now on, until `take`."""
        self.detach()
        self.best, self.now, self.depth, self.passes = None, None, 0, [0, 0, 0]
        self.listeners.clear()
        self.list_modules()
        self.armed = True
        if self.traced is not None or is_compiled(self.model):
            self.trace()
            return
        for module in self.ancestors:
            self.outer.around(module, self.guard(self.enter), self.guard(self.leave))
        if self.loose:
            self.attach_blocks()

    def detach(self) -> None:
        self.armed = False
        self.outer.remove()
        self.inner.remove()
        self.leave_followed()

    def leave_followed(self) -> None:
        if self.followed is not None:
            self.followed.detach()
            self.followed = None

    def attach_blocks(self) -> None:
        for block in self.blocks.values():
            self.inner.around(block, self.guard(self.enter_block), self.guard(self.leave_block))

    def guard(self, function: Callable[..., None]) -> Callable[..., None]:
        return guarded(function, self.give_up)

    def take(self) -> PassRecord | None:
        """Return the measured pass, or None."""
        if self.now is not None and self.loose and self.now.layers:
            self.end()
        return self.best if self.best is not None and self.best.layers else None

    def enter(self, module: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> None:
        """Begin a pass before the call of a module that contains layers, and read its padding mask."""
        self.depth += 1
        if self.depth == 1:
            self.begin(None, (module, args, kwargs))
        if self.now is not None and self.options.mask is not False:
            self.now.read_inputs(module, args, kwargs, self.options.mask, outermost=self.depth == 1)
        if self.depth == 1 and self.followed is not None:
            self.followed.begin(module, args, kwargs)

    def leave(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if output is None and sys.exc_info()[0] is not None:  # the pass failed between two blocks
            self.now = None
        self.leave_outer(scalar_in(output))

    def leave_outer(self, loss: Tensor | None) -> None:
        self.depth = max(self.depth - 1, 0)
        if self.depth == 0:
            if self.now is not None:
                self.now.loss = loss
            self.end()

    def begin(self, kind: int | None = None, call: tuple[nn.Module, Any, Mapping[str, Any]] | None = None) -> None:
        """Begin to measure a pass, if its kind is better than that of the best one so far."""
        if kind is None:
            modules = self.blocks.values() or self.ancestors
            kind = int(torch.is_grad_enabled()) * (1 + any(module.training for module in modules))
        self.passes[kind] += 1
        self.leave_followed()
        if not (kind > 0 or self.options.passes == "all") or (self.best is not None and kind <= self.best.kind):
            return
        self.list_modules()
        if self.layers is None and call is not None:
            self.find(*call)
        self.now = PassRecord(kind)
        self.begun()
        if call is not None and self.layers is not None and self.layers.flow is not None:
            self.followed = FollowedPass(
                self.layers, self.options.samples, lambda x: real_tokens(x, self.now, self.options), self.keep_layer
            )
        elif not self.inner and self.traced is None:
            self.attach_blocks()

    def find(self, module: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> None:
        """Find the layers in the first pass, in a thread, where modes of PyTorch that are active here are not."""
        try:
            layers = outbox.THREAD.submit(find_layers, self.model, module, args, kwargs, tuple(self.named)).result()
        except RankfallError as error:
            self.use_blocks(error)
        except Exception as error:  # whatever a model raises as a copy on the processor
            self.use_blocks(RankfallError(f"{type(error).__name__} in a copy of it on the processor"))
        else:
            self.use_layers(layers)

    def end(self) -> None:
        """End a pass. A pass without a call of a layer does not count."""
        if self.followed is not None:
            why, error = self.followed.end(complete=self.now is not None), self.followed.error
            if sys.exc_info()[0] is None:  # else PyTorch goes through the hooks, which must stay as they are
                self.leave_followed()
            if error is not None:
                raise error
            self.failures = self.failures + 1 if why else 0
            if why:
                self.now = None
            if self.failures == TRIES:
                self.use_blocks(RankfallError(why))
        if self.now is not None and self.now.layers:
            self.best = self.now
        self.now = None
        if not self.loose:
            self.inner.remove()

    def keep_layer(self, layer: int, states: Tensor, listener: AttentionListener | None) -> None:
        if self.now is not None:
            self.now.layers.append(layer_record(layer - 1 if layer else None, states, listener, self.now, self.options))

    def enter_block(self, module: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> None:
        block = self.place.get(id(module))
        if self.depth == 0 and self.loose:
            again = block == 0 and len(self.place) > 1 and self.now is not None and self.now.layers
            if self.now is None or again:
                self.end()
                self.begin()
        if self.now is not None and block is not None:
            listener = self.before_block(block, input_states(args, kwargs, self.options.states, self.axis))
            if listener is not None:
                listener.__enter__()

    def before_block(self, block: int, states: Tensor | None) -> AttentionListener | None:
        """Measure the input of the first block, and return a listener for the block."""
        assert self.now is not None
        listener = None
        if not self.now.layers:
            self.now.layers.append(layer_record(None, states, None, self.now, self.options))
        if states is not None:
            real, _ = real_tokens(states, self.now, self.options)
            listener = AttentionListener(len(states), states.shape[1], self.options.samples, real)
        self.listeners.append((block, listener))
        return listener

    def leave_block(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        block = self.place[id(module)]
        if self.now is None or not self.listeners or self.listeners[-1][0] != block:
            return
        _, listener = self.listeners.pop()
        if listener is not None:
            listener.__exit__(None, None, None)
        if output is None and sys.exc_info()[0] is not None:  # the block failed, so the pass does not count
            self.now = None
            return
        name = tuple(self.blocks)[block]
        states = states_of(output, name, self.options.states, self.axis)
        if self.options.batch_axis is None and self.axis == 0:
            check_not_turned(states, self.now.input_shapes, name)
        self.now.layers.append(layer_record(block, states, listener, self.now, self.options))
