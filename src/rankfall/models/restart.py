"""A model as a differentiable function of the states that enter its first layer, computed by the model's own code.

The embedding runs as usual, and its result is replaced on entering the module of the first layer. The state after a layer is what leaves
its module.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rankfall.errors import RankfallError
from rankfall.models.subject import Subject, failing, first_layer
from rankfall.streams.forward import Wide
from rankfall.streams.frames import Call, Frames


def entering(subject: Subject, start: int, stop: int) -> Tensor:
    """Return the states that enter the first layer, (B, T, D), behind the embedding's positions and norm."""
    found: dict[int, Tensor] = {}
    subject.run([subject.variants[0]], start, stop, found.__setitem__)
    return found[0][0]


def layers_from(subject: Subject, sample: int) -> Callable[[Tensor], list[Tensor]]:
    """Return the function from states before the first layer, (T, D) or (B, T, D), to the states after layers 1 .. L.

    The layers' other inputs (masks, rotary angles) are those of one sample of the batch. Samples have no padding.
    """
    model, stream = subject.loaded.model, subject.stream
    if subject.loaded.streamer is not None:
        raise RankfallError(
            f"model {subject.request.source.name!r} is streamed: it cannot be differentiated; load it whole"
        )
    exits = {end.call: (layer, end) for layer, end in enumerate(stream.flow.ends, 1) if end is not None}
    module = first_layer(subject)
    model.requires_grad_(False)  # only states are differentiated
    plain = entering(subject, sample, sample + 1)
    accepted = inspect.signature(model.forward).parameters
    off: dict[str, Any] = {name: False for name in ("use_cache", "use_mems") if name in accepted}

    def run(states: Tensor) -> list[Tensor]:
        batch = states if states.dim() == 3 else states[None]
        swapped = _laid_out(batch, stream.batch_axis)
        original = _laid_out(plain.expand(len(batch), -1, -1), stream.batch_axis)
        found: dict[int, Tensor] = {}
        calls = 0

        def replace(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
            nonlocal calls
            calls += 1
            if calls > 1:  # the module serves further layers
                return args, kwargs
            given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
            name = next((key for key, value in given.items() if _same(value, original)), None)
            if name is None:
                raise RankfallError(
                    f"model {subject.request.source.name!r}: its first layer does not receive the state that the other layers continue"
                )
            given[name] = swapped
            return tuple(given.pop(place) for place in range(len(args))), given

        def leave(call: Call, inputs: Any, output: Any) -> None:
            if call in exits:
                value = output
                layer, end = exits[call]
                for key in end.path:
                    value = value[key]
                state = value.transpose(0, 1) if stream.batch_axis == 1 else value
                found[layer] = state.reshape(*states.shape)

        inputs = {
            name: value.expand(len(batch), *value.shape[1:])
            for name, value in subject.inputs(sample, sample + 1).items()
        }
        handle = module.register_forward_pre_hook(replace, with_kwargs=True)
        try:
            with failing(subject.request, "as a function of its first states"), Frames(model, on_exit=leave), Wide():
                model(**inputs, **off)
        finally:
            handle.remove()
        return [found[layer] for layer in range(1, subject.layers + 1)]

    return run


def _laid_out(states: Tensor, batch_axis: int) -> Tensor:
    return states.transpose(0, 1) if batch_axis == 1 else states


def _same(value: Any, states: Tensor) -> bool:
    """Return whether a value equals the states up to rounding. Products of another batch size are summed in another order."""
    if not isinstance(value, Tensor) or value.numel() != states.numel() or not value.is_floating_point():
        return False
    limit = 1e3 * torch.finfo(states.dtype).eps * float(states.abs().max())
    return float((value.reshape(states.shape) - states).abs().max()) <= limit
