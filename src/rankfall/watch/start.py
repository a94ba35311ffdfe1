"""The function `watch`, which builds a Watcher from a model and a few options."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from rankfall.errors import RankfallError
from rankfall.streams.names import Wanted
from rankfall.watch import gradients
from rankfall.watch.alarms import Event
from rankfall.watch.blocks import find_blocks
from rankfall.watch.condition import conditions
from rankfall.watch.outbox import log_event
from rankfall.watch.padding import MaskFunction
from rankfall.watch.records import CaptureOptions
from rankfall.watch.sinks.open import RowSink, open_sinks
from rankfall.watch.states import StatesFunction, axis_of_batch
from rankfall.watch.watcher import Watcher, process_number


def watch(
    model: nn.Module,
    every: int = 100,
    to: Any = "run.parquet",
    *,
    blocks: Wanted | None = None,
    samples: int = 8,
    mask: MaskFunction | bool | None = None,
    states: StatesFunction | None = None,
    batch_axis: int | None = None,
    queries: gradients.Wanted | None = None,
    keys: gradients.Wanted | None = None,
    passes: str = "training",
    raise_if: str | list[str] | None = None,
    alarms: bool | Callable[[Event], Any] = True,
    start: int = 0,
    automatic: bool = True,
    together: bool | None = None,
) -> Watcher:
    """Watch a model while it trains: what attention loses by layer, on the training batch, at the first step and every `every`th step.

    to: 'run.parquet', 'tensorboard:FOLDER', 'wandb', a function of rows, or a list of these. blocks: a glob of names, a pattern, names
    or modules; by default they are detected. samples: the most samples of a batch to measure. mask: a function with the arguments of
    the model that returns (batch, tokens), True at tokens; by default `attention_mask` and similar arguments are read; False: no
    padding. states: a function from the output of a block to (batch, tokens, width). batch_axis: 1 if states are (tokens, batch,
    width). queries, keys: globs of weights in a block, or functions of a block. passes: 'training' (with gradients) or 'all'.
    raise_if: a condition such as 'residual[-1] < 0.05 for 3 logs', or several. alarms: whether to log what goes wrong, or a function
    of each `Event`. start: number of earlier steps of a resumed training. automatic: count the steps of optimisers. together: take
    means over the batches of all processes of a group, each of which calls `watch`; by default where weights are sharded. False: the
    first process writes what it measures.
    """
    for name, value, least in (("every", every, 1), ("samples", samples, 1), ("start", start, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise RankfallError(f"{name} is {value!r}: it must be a whole number of at least {least}")
    if passes not in ("training", "all"):
        raise RankfallError(f"passes is {passes!r}: 'training' for those with gradients, or 'all'")
    for name, function in (("mask", mask), ("states", states)):
        if function is not None and not callable(function) and not (name == "mask" and function is False):
            raise RankfallError(f"{name} is {function!r}: it must be a function")
    found = find_blocks(model, blocks)
    axis = axis_of_batch(found.modules, found.names, batch_axis)
    options = CaptureOptions(
        samples, axis, mask, states, passes, blocks is None and states is None, batch_axis is None and axis == 0
    )
    weights_of = partial(gradients.query_key_weights, queries=queries, keys=keys)
    stop = conditions(raise_if, len(found.names))
    sinks: list[RowSink] = open_sinks(to) if process_number() == 0 else []
    report = alarms if callable(alarms) else log_event if alarms and process_number() == 0 else None
    if (
        together is None
    ):  # a process that waits for one without `watch` would hang; sharded weights need all processes in any case
        together = any(hasattr(weight, "full_tensor") for weight in model.parameters())  # of DTensors
    return Watcher(model, found, weights_of, sinks, stop, report, options, every, start, automatic, together)
