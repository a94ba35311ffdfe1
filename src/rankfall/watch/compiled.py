"""Watch compiled models by an operator that the graph calls at each block, and at each attention in a block.

The operator does nothing unless its watcher measures this step, so graphs do not break and logged steps compile nothing. The compiler
traces the hooks, which stay attached while a compiled model is watched. The operator itself runs as Python. It is marked as unsafe for
CUDA graphs, so that these are split around it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from weakref import WeakValueDictionary, finalize

import torch
from torch import Tensor, nn
from torch.nn import functional

from rankfall.watch.states import PADDED, REAL

ENTER, BEFORE, AFTER, LEAVE = range(4)
TOKEN = torch.zeros(())  # an argument that the operator says it changes, so that calls are kept and stay in order
ATTENTION = functional.scaled_dot_product_attention


WATCHED: WeakValueDictionary[int, Any] = WeakValueDictionary()  # captures by number
TRACED: set[int] = set()  # numbers of captures that need `attention` in place of PyTorch's function


class Tracing:
    """Hold what the compiler traces: the watcher of the block in progress, and whether hooks of an eager watcher were met."""

    def __init__(self) -> None:
        self.number, self.met = -1, False


TRACING = Tracing()


@torch.library.custom_op("rankfall::see", mutates_args={"token"}, tags=(torch.Tag.cudagraph_unsafe,))
def see(
    tensor: Tensor | None, mask: Tensor | None, token: Tensor, watcher: int, event: int, place: int, kind: int
) -> None:
    """Pass a state, a padding mask or a loss on to a watcher."""
    if watcher in WATCHED and torch._C._current_graph_task_id() == -1:  # not recomputed in a backward pass
        WATCHED[watcher].heard(event, place, [tensor, mask], kind)


@torch.library.custom_op("rankfall::attend", mutates_args={"token"}, tags=(torch.Tag.cudagraph_unsafe,))
def attend(
    query: Tensor, key: Tensor, mask: Tensor | None, token: Tensor, watcher: int, is_causal: bool, scale: float | None
) -> None:
    """Pass the arguments of `scaled_dot_product_attention` on to a watcher."""
    if watcher in WATCHED and torch._C._current_graph_task_id() == -1:
        arguments = {"query": query, "key": key, "attn_mask": mask, "is_causal": is_causal, "scale": scale}
        WATCHED[watcher].heard_attention(arguments)


@see.register_fake
@attend.register_fake
def see_nothing(*arguments: Any) -> None:
    """Describe the operators to the compiler: they return nothing."""


def attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """Compute `scaled_dot_product_attention`, and in a traced block of a watched model call the operator first."""
    if torch.compiler.is_compiling() and TRACING.number >= 0:
        mask = None if attn_mask is None else attn_mask.detach()
        attend(query.detach(), key.detach(), mask, TOKEN, TRACING.number, is_causal, scale)
    return ATTENTION(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)


def unwrap_attention(number: int) -> None:
    """Put PyTorch's function back when the last compiled model is no longer watched."""
    TRACED.discard(number)
    if not TRACED and functional.scaled_dot_product_attention is attention:
        functional.scaled_dot_product_attention = ATTENTION


def is_compiled(model: nn.Module) -> bool:
    """Return whether a model or one of its modules is compiled."""
    return any(hasattr(module, "_orig_mod") or module._compiled_call_impl is not None for module in model.modules())


class TracedHooks:
    """Attach hooks to ancestors and blocks, which the compiler traces. `state_in` and `state_out` pick the states of a block."""

    def __init__(
        self,
        capture: Any,  # a `Capture`, whose methods `heard` and `heard_attention` the operators call
        ancestors: tuple[nn.Module, ...],
        blocks: tuple[nn.Module, ...],
        state_in: Callable[[Any, Any], Tensor | None],
        state_out: Callable[[int, Any], Tensor],
        loss: Callable[[Any], Tensor | None],
    ) -> None:
        functional.scaled_dot_product_attention = attention
        self.number = id(capture)
        WATCHED[self.number] = capture
        TRACED.add(self.number)
        self.finish = finalize(self, unwrap_attention, self.number)
        self.state_in, self.state_out, self.loss = state_in, state_out, loss
        self.hooks = ExitStack()
        for module in ancestors:
            names = tuple(inspect.signature(module.forward).parameters)
            self.hooks.enter_context(module.register_forward_pre_hook(self.entering(names), with_kwargs=True))
            self.hooks.enter_context(module.register_forward_hook(self.leaving()))
        for place, block in enumerate(blocks):
            self.hooks.enter_context(block.register_forward_pre_hook(self.before(place), with_kwargs=True))
            self.hooks.enter_context(block.register_forward_hook(self.after(place)))

    def entering(self, names: tuple[str, ...]) -> Callable[..., None]:
        """Return a hook that passes on the padding mask in a call of an ancestor, whose parameters have these names."""

        def hook(module: nn.Module, args: Any, kwargs: Any) -> None:
            arguments = {**dict(zip(names, args)), **kwargs}
            shape = next((argument for argument in (*args, *kwargs.values()) if isinstance(argument, Tensor)), None)
            for place, name in enumerate((*REAL, *PADDED)):
                mask = arguments.get(name)
                if isinstance(mask, Tensor) and mask.ndim == 2:
                    see(shape, mask.detach(), TOKEN, self.number, ENTER, place, self.kind(module))
                    return
            see(None if shape is None else shape.detach(), None, TOKEN, self.number, ENTER, -1, self.kind(module))

        return hook

    def leaving(self) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            see(self.loss(output), None, TOKEN, self.number, LEAVE, -1, 0)

        return hook

    def before(self, place: int) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, kwargs: Any) -> None:
            see(self.state_in(args, kwargs), None, TOKEN, self.number, BEFORE, place, self.kind(module))
            TRACING.number = self.number

        return hook

    def after(self, place: int) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            TRACING.number = -1
            see(self.state_out(place, output), None, TOKEN, self.number, AFTER, place, 0)

        return hook

    @staticmethod
    def kind(module: nn.Module) -> int:
        """Return the kind of a pass, as in `PassRecord`."""
        return int(torch.is_grad_enabled()) * (1 + module.training)

    def remove(self) -> None:
        self.hooks.close()
        self.finish()
