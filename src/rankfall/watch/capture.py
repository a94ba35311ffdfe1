"""One pass through the blocks of a model, with the numbers of each layer computed during the pass.

A pass begins when a module that contains the blocks is called, and ends when it returns. If no such module is called (a loop over the
blocks in a training step), a pass goes from the first block to the last. Blocks have hooks only during a measured pass, since PyTorch
computes some layers differently with hooks. Recomputation in a backward pass (gradient checkpointing) is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError
from rankfall.streams.flow import Flow
from rankfall.streams.names import unwrap
from rankfall.watch.attention import AttentionListener
from rankfall.watch.blocks import Blocks
from rankfall.watch.compiled import AFTER, BEFORE, ENTER, LEAVE, TracedHooks, is_compiled
from rankfall.watch.followed import FollowedPass, find_flow_elsewhere, find_flows
from rankfall.watch.gradients import QueryKeyWeights
from rankfall.watch.hooks import Attached
from rankfall.watch.padding import REAL, read_mask
from rankfall.watch.records import CaptureOptions, PassRecord, layer_record, real_tokens
from rankfall.watch.states import address, check_not_turned, input_states, scalar_in, states_of

MOST_WEIGHTS = 2**27  # of a model that is copied without need


class Capture:
    """Hooks that measure the first pass in training mode, or a pass in eval mode if there is none, until they are removed."""

    def __init__(
        self,
        model: nn.Module,
        blocks: Blocks,
        weights_of: Callable[[nn.Module | None], QueryKeyWeights],
        options: CaptureOptions,
        give_up: Callable[[], None],
    ) -> None:
        self.model, self.blocks, self.options, self.give_up = model, blocks, options, give_up
        self.weights_of = weights_of
        self.weights = [weights_of(one) for one in blocks.modules]
        self.flow: Flow | None = None  # of a model whose blocks do not return their states
        self.following: FollowedPass | None = None
        self.called: tuple[Any, Mapping[str, Any]] | None = None  # arguments of the pass in progress
        self.last_output = 0  # address of the states that the last block returned
        self.apart = False  # whether a block was given another tensor than the block before it returned
        self.place = {id(one): number for number, one in enumerate(blocks.modules)}
        self.outer, self.inner = Attached(), Attached()
        self.loose = False  # whether blocks are called outside all modules that contain them
        self.depth, self.passes = 0, [0, 0, 0]  # modules around; number of passes by kind
        self.best: PassRecord | None = None
        self.now: PassRecord | None = None
        self.listeners: list[tuple[int, AttentionListener | None]] = []
        self.armed = False
        self.traced: TracedHooks | None = None  # of a compiled model

    def trace(self) -> None:
        """Attach hooks that the compiler traces, for as long as the model is watched."""
        if self.traced is None:
            options, modules = self.options, self.blocks.modules
            self.traced = TracedHooks(
                self,
                self.blocks.ancestors,
                modules,
                lambda args, kwargs: input_states(args, kwargs, options.states, options.batch_axis),
                lambda at, output: states_of(
                    output, self.blocks.names[at], modules[at], options.states, options.batch_axis
                ),
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
            self.depth = max(self.depth - 1, 0)
            if self.depth == 0:
                if self.now is not None:
                    self.now.loss = tensor
                self.end()
        elif event == BEFORE and self.now is not None:
            self.listeners.append((place, self.before_block(tensor)))
        elif event == AFTER and self.now is not None and self.listeners:
            assert tensor is not None
            self.now.layers.append(layer_record(place, tensor, self.listeners.pop()[1], self.now, self.options))

    def heard_attention(self, given: Mapping[str, Any]) -> None:
        if self.now is not None and self.listeners and self.listeners[-1][1] is not None:
            self.listeners[-1][1].keep_fused(given)

    def attach(self) -> None:
        """Measure passes from now on, until `take`."""
        self.detach()
        self.best, self.now, self.depth, self.passes = None, None, 0, [0, 0, 0]
        self.listeners.clear()
        self.armed = True
        if self.blocks.names and (self.traced is not None or is_compiled(self.model)):
            self.trace()
            return
        for one in self.blocks.ancestors:
            self.outer.around(one, self.guard(self.enter), self.leave)
        if self.loose:
            self.attach_blocks()

    def detach(self) -> None:
        self.armed = False
        self.outer.remove()
        self.inner.remove()
        if self.following is not None:
            self.following.end(complete=False)
            self.following = None

    def attach_blocks(self) -> None:
        for one in self.blocks.modules:
            self.inner.around(one, self.guard(self.enter_block), self.guard(self.leave_block))

    def guard(self, function: Callable[..., None]) -> Callable[..., None]:
        """Wrap a hook so that a `RankfallError` removes all hooks. Code that catches the error continues without the watcher."""

        def try_hook(*given: Any) -> None:
            try:
                function(*given)
            except RankfallError:
                self.give_up()
                raise

        return try_hook

    def take(self) -> PassRecord | None:
        """Return the measured pass, or None."""
        if self.now is not None and self.loose and self.now.layers:
            self.end()
        return self.best if self.best is not None and self.best.layers else None

    def enter(self, module: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> None:
        """Begin a pass before the call of a module that contains blocks, and read its padding mask."""
        if torch._C._current_graph_task_id() != -1:  # recomputed in a backward pass
            return
        self.depth += 1
        if self.depth == 1:
            self.called = (args, kwargs)
            self.begin()
        if self.now is not None and self.options.mask is not False:
            self.now.read_inputs(module, args, kwargs, self.options.mask, outermost=self.depth == 1)
        if self.depth == 1 and self.following is not None:
            self.following.begin(module, args, kwargs)

    def leave(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if torch._C._current_graph_task_id() != -1:
            return
        self.depth = max(self.depth - 1, 0)
        if output is None and sys.exc_info()[0] is not None:  # the pass failed between two blocks
            self.now = None
        if self.depth == 0:
            if self.now is not None:
                self.now.loss = scalar_in(output)
            self.end()
            self.called = None

    def begin(self, kind: int | None = None) -> None:
        modules = self.blocks.modules or self.blocks.ancestors
        if kind is None:
            kind = int(torch.is_grad_enabled()) * (1 + any(one.training for one in modules))
        self.passes[kind] += 1
        wanted = kind > 0 or self.options.passes == "all"
        if wanted and (self.best is None or kind > self.best.kind):
            self.now = PassRecord(kind)
            if self.flow is None and not self.blocks.names:
                self.find_layers(RankfallError(self.blocks.missing))
            if self.flow is not None and self.called is not None:
                samples = self.options.samples
                self.following = FollowedPass(
                    unwrap(self.model),
                    self.flow,
                    samples,
                    lambda x: real_tokens(x, self.now, self.options),
                    self.keep_layer,
                )
            elif not self.inner and self.traced is None:
                self.attach_blocks()

    def end(self) -> None:
        """End a pass. A pass without a call of a block does not count."""
        if self.following is not None:
            following, self.following = self.following, None
            following.end(complete=self.now is not None)
        if self.now is not None and not self.layers_are_elsewhere(self.now) and self.now.layers:
            self.best = self.now
        self.now = None
        if not self.loose:
            self.inner.remove()

    def enter_block(self, module: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> None:
        if torch._C._current_graph_task_id() != -1:
            return
        block = self.place.get(id(module))
        if self.depth == 0 and self.loose:
            again = block == 0 and len(self.place) > 1 and self.now is not None and self.now.layers
            if self.now is None or again:
                self.end()
                self.begin()
        if self.now is None or block is None:
            return
        given = input_states(args, kwargs, self.options.states, self.options.batch_axis)
        self.apart |= bool(self.now.layers) and given is not None and address(given) != self.last_output
        listener = self.before_block(given)
        if listener is not None:
            listener.__enter__()
        self.listeners.append((id(module), listener))

    def before_block(self, given: Tensor | None) -> AttentionListener | None:
        """Measure the input of the first block, and return a listener for the block."""
        assert self.now is not None
        if not self.now.layers:
            self.now.layers.append(layer_record(None, given, None, self.now, self.options))
        if given is None:
            return None
        return AttentionListener(
            len(given), given.shape[1], self.options.samples, real_tokens(given, self.now, self.options)[0]
        )

    def leave_block(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if (
            torch._C._current_graph_task_id() != -1
            or self.now is None
            or not self.listeners
            or self.listeners[-1][0] != id(module)
        ):
            return
        _, listener = self.listeners.pop()
        if listener is not None:
            listener.__exit__(None, None, None)
        if output is None and sys.exc_info()[0] is not None:  # the block failed, so the pass does not count
            self.now = None
            return
        block = self.place[id(module)]
        try:
            states = states_of(output, self.blocks.names[block], module, self.options.states, self.options.batch_axis)
        except RankfallError as error:
            if not self.options.automatic or self.called is None:
                raise
            self.find_layers(error)
            self.now = None  # the next pass is measured
            return
        self.last_output = address(states)
        if self.options.turned:
            check_not_turned(states, self.now.given, self.blocks.names[block])
        self.now.layers.append(layer_record(block, states, listener, self.now, self.options))

    def find_layers(self, error: RankfallError) -> None:
        """Find the layers by the additions of the model, or raise the error that says why blocks do not serve."""
        try:
            self.follow(find_flows(unwrap(self.model), *(self.called or ((), {})))[0])
        except RankfallError:
            raise error from None

    def layers_are_elsewhere(self, record: PassRecord) -> bool:
        """Return whether the blocks are parts of layers, as where their model adds what they return, or only hold such parts.

        Blocks that are given what the one before returns are layers. Others are compared with the layers of the residual streams, once, and
        not in a large model, of which a copy on the CPU would take too long. So are blocks that two steps in a row have not called.
        """
        doubtful = self.apart or (self.loose and not record.layers)
        if self.called is None or not doubtful or not self.options.automatic or self.following is not None:
            return False
        if sum(weight.numel() for weight in self.model.parameters()) > MOST_WEIGHTS:
            return False
        self.apart = False
        self.options = replace(self.options, automatic=False)
        flow = find_flow_elsewhere(unwrap(self.model), self.called, self.blocks.names)
        return flow is not None and self.follow(flow)

    def follow(self, flow: Flow) -> bool:
        """Measure the layers of this stream from now on, and return True."""
        self.flow, self.loose = flow, False
        self.inner.remove()
        self.listeners.clear()
        self.place.clear()
        named = dict(unwrap(self.model).named_modules())
        self.blocks = Blocks(flow.layers, (), self.blocks.ancestors)
        self.weights = [self.weights_of(named.get(name)) for name in flow.layers]
        return True

    def keep_layer(self, layer: int, states: Tensor, listener: AttentionListener | None) -> None:
        if self.now is not None:
            self.now.layers.append(layer_record(layer - 1 if layer else None, states, listener, self.now, self.options))
