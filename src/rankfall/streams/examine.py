"""The examination of a module: a copy, its inputs, and its residual streams from one recorded pass, verified bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError, describe_error
from rankfall.streams.arguments import Arguments, Wide, arguments_of, as_format, call_model, copy_of, keep_random_state
from rankfall.streams.editor import PassResult, run_through
from rankfall.streams.flow import Edits, Flow
from rankfall.streams.frames import Call, Frames
from rankfall.streams.names import find_named, unwrap
from rankfall.streams.reading import streams_of
from rankfall.streams.record import map_tensors, tensors_in
from rankfall.streams.trace import Tracer

FAILURES = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError)


@dataclass
class Examined:
    """A module prepared for measures: a copy, its inputs and its streams."""

    name: str
    model: nn.Module  # a copy
    arguments: Arguments
    flows: list[Flow]  # the longest first
    dtype: torch.dtype
    notes: list[str]


def examine(model: nn.Module, inputs: Any, *, blocks: Any = None, name: str = "", shaped: bool = True) -> Examined:
    """Copy, run and record a module, find its streams, test what mixes tokens, and verify. The module itself is not changed.

    Without `shaped` the streams hold for inputs of other shapes, too, unless a module adds up another number of tensors for them.
    """
    if not isinstance(model, nn.Module):
        raise RankfallError(f"model is {model!r:.60}, not an nn.Module: pass an instance, such as build()")
    model = unwrap(model)
    name = name or type(model).__name__
    example = arguments_of(inputs)
    names = None if blocks is None else list(find_named(model, blocks))
    with keep_random_state():
        copied, arguments, output, dtype, notes = prepare_copy(model, example, name)
        try:
            tracer, _ = trace_pass(copied, arguments, partial(Tracer, shaped=shaped))
            flows = streams_of(copied, arguments, tracer, names, name)
            for flow in flows:
                verify_pass(copied, arguments, flow, output)
        except FAILURES as error:
            raise RankfallError(
                f"{name} runs, but not while its states are changed to see what mixes tokens: {describe_error(error)}"
            ) from error
    return Examined(name, copied, arguments, flows, dtype, notes)


def prepare_copy(
    model: nn.Module, example: Arguments, name: str
) -> tuple[nn.Module, Arguments, Any, torch.dtype, list[str]]:
    """Return a copy that runs, its arguments, output, dtype and notes: in float64, or in float32 if the module's code needs it."""
    wide_error: Exception | None = None  # the error in float64
    for dtype in (torch.float64, torch.float32):
        copied, arguments = copy_of(model, dtype), as_format(example, dtype)
        try:
            with torch.no_grad():
                first, second = plain(copied, arguments), plain(copied, arguments)
        except FAILURES as error:
            if dtype == torch.float64:
                wide_error = error
                continue
            first_error = wide_error or error
            one_dict = not example.args and isinstance(first_error, TypeError)
            hint = ", or (dict,) if it takes one argument that is a dict" * one_dict
            raise RankfallError(
                f"{name} fails on inputs ({example.show_shapes()}): {describe_error(first_error)}; pass an example that it runs on by "
                f"inputs=...{hint}"
            ) from error
        if not alike_outputs(first, second):
            path = first_changed(copied, arguments, arguments, alike_outputs)
            raise RankfallError(
                f"{name} gives two answers for the same inputs in eval mode{f', first in {path}' * bool(path)}: "
                "does it draw at random, as F.dropout(x) without training=self.training, or keep something between two calls?"
            )
        notes = [] if dtype == torch.float64 else ["its code needs float32, in which a residual below 1e-6 is rounding"]
        return copied, arguments, first, dtype, notes
    raise AssertionError


def find_maker(model: nn.Module, arguments: Arguments, wrong: Callable[[int, int, Any], bool]) -> str:
    """Return the first module call whose inputs are right and whose output is wrong, or ''.

    What becomes wrong between two modules is attributed to the module that calls them.

    `wrong(number, side, value)` judges the inputs (side 0) and the output (1) of the call that is the `number`-th to end.
    """
    makers: list[str] = []
    numbers = count()

    def look(call: Call, inputs: Any, output: Any) -> None:
        number = next(numbers)
        if not makers and wrong(number, 1, output):
            owner = str(frames.stack[-1]) if frames.stack else ""
            makers.append(owner if wrong(number, 0, inputs) else str(call))

    with torch.no_grad(), Frames(model, on_exit=look) as frames:
        plain(model, arguments)
    return makers[0] if makers else ""


def first_changed(model: nn.Module, arguments: Arguments, second: Arguments, alike: Callable[[Any, Any], bool]) -> str:
    """Return the first module call whose output is not `alike` in a second pass, of other arguments, though its inputs are; or ''."""
    before: list[tuple[Any, Any]] = []

    def keep(_: Call, inputs: Any, output: Any) -> None:
        before.append(map_tensors((inputs, output), torch.clone))

    with torch.no_grad(), Frames(model, on_exit=keep):
        plain(model, arguments)
    return find_maker(
        model,
        second,
        lambda number, side, value: number < len(before) and not alike(value, before[number][side]),
    )


def plain(model: nn.Module, arguments: Arguments) -> Any:
    """Run the model without a recorder and return its output."""
    with Wide():
        return call_model(model, arguments)


def alike_outputs(first: Any, second: Any) -> bool:
    """Return whether two outputs have equal tensors at the same paths."""
    before, after = dict(tensors_in(first)), dict(tensors_in(second))
    return before.keys() == after.keys() and all(same(before[key], after[key]) for key in before)


def same(first: Tensor, second: Tensor) -> bool:
    """Return whether two tensors are equal bit by bit, where NaN equals NaN."""
    if first.shape != second.shape:
        return False
    if not first.is_floating_point():
        return torch.equal(first, second)
    return bool(((first == second) | (first.isnan() & second.isnan())).all())


def trace_pass(
    model: nn.Module, arguments: Arguments, make_tracer: Callable[[Frames], Tracer] = Tracer
) -> tuple[Tracer, Any]:
    """Record a pass. Return the recorder and the model's output, which is that of an untouched pass."""
    with torch.no_grad(), Frames(model) as frames:
        tracer = make_tracer(frames)
        frames.on_exit = tracer.leave
        with tracer:
            return tracer, call_model(model, arguments)


def verify_pass(model: nn.Module, arguments: Arguments, flow: Flow, output: Any) -> PassResult:
    """Return the result of a watched pass without edits. Raise an error unless it equals the untouched pass bit by bit."""
    result = run_through(model, arguments, flow, Edits())
    if not alike_outputs(output, result.output):
        raise RankfallError(
            "the pass that is watched is not equal, bit by bit, to the untouched one: is something computed anew each time?"
        )
    return result
