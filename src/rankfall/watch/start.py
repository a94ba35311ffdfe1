"""The function `watch`, which builds a Watcher from a model and a few options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from rankfall.errors import RankfallError
from rankfall.streams.names import Wanted, find_named
from rankfall.watch import gradients
from rankfall.watch.alarms import Event, StopCondition, check_layers
from rankfall.watch.gradients import Parameters
from rankfall.watch.layers import WatchedLayers, is_sharded
from rankfall.watch.outbox import LOGGER, log_event
from rankfall.watch.records import CaptureOptions
from rankfall.watch.sinks import RowSink, open_sinks
from rankfall.watch.states import MaskFunction, StatesFunction
from rankfall.watch.watcher import KEPT, Watcher, process_number


class WatchingCallback:
    """The part that callbacks of training libraries share: the options of `watch`, and the watcher of the training in progress."""

    def __init__(self, every: int = 100, to: Any = "run.parquet", **options: Any) -> None:
        self.options = {"every": every, "to": to, **options}
        self.watcher: Watcher | None = None

    def begin(self, model: Any, start: int) -> None:
        """Watch the model of a training that begins behind `start` steps."""
        self.close()
        self.watcher = watch(model, **{"start": start, **self.options}, automatic=False)

    def close(self) -> None:
        if self.watcher is not None:
            self.watcher.close()
            self.watcher = None


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
    detail: str | None = None,
) -> Watcher:
    """Watch a model while it trains: what attention loses by layer, on the training batch, at the first step and every `every`th step.

    to: 'run.parquet', 'stdout', 'tensorboard:FOLDER', 'wandb', 'trackio', 'mlflow', a function of rows, or a list of these. blocks: a
    glob of names, a pattern, names or modules that are the layers; by default the first pass shows them. samples: the most samples of
    a batch to measure. mask: a function with the arguments of the model that returns (batch, tokens), True at tokens; by default
    `attention_mask` and similar arguments are read; False: no padding. states: a function from the output of a block to (batch, tokens,
    width). batch_axis: 1 if blocks return (tokens, batch, width), where layers are not found in the first pass. queries, keys: globs of
    weights in a layer, or functions of its module. passes: 'training' (with gradients) or 'all'. raise_if: a condition such as
    'residual[-1] < 0.05 for 3 logs', or several. alarms: whether to log what goes wrong, or a function of each `Event`. start: number of
    earlier steps of a resumed training. automatic: count the steps of optimisers. together: take means over the batches of all
    processes of a group, each of which calls `watch`; by default where weights are sharded. False: the first process writes what it
    measures. detail: 'heads' for the numbers of each attention head, 'parameters' for the gradient and the update of each, or 'all'.
    """
    for name, value, least in (("every", every, 1), ("samples", samples, 1), ("start", start, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise RankfallError(f"{name} is {value!r}: it must be a whole number of at least {least}")
    if passes not in ("training", "all"):
        raise RankfallError(f"passes is {passes!r}: 'training' for those with gradients, or 'all'")
    if detail not in (None, "heads", "parameters", "all"):
        raise RankfallError(f"detail is {detail!r}: 'heads', 'parameters' or 'all'")
    for name, function in (("mask", mask), ("states", states)):
        if function is not None and not callable(function) and not (name == "mask" and function is False):
            raise RankfallError(f"{name} is {function!r}: it must be a function")
    if not isinstance(model, nn.Module):
        raise RankfallError(f"watch() takes a torch.nn.Module, not {type(model).__name__}")
    named = {} if blocks is None else find_named(model, blocks)
    if batch_axis not in (None, 0, 1) or isinstance(batch_axis, bool):
        raise RankfallError(
            f"batch_axis is {batch_axis!r}: 0 where states are (batch, tokens, width), 1 where they are (tokens, batch, width)"
        )
    options = CaptureOptions(samples, batch_axis, mask, states, passes, detail in ("heads", "all"))
    stop = [StopCondition(text) for text in ([raise_if] if isinstance(raise_if, str) else raise_if or [])]

    def settle(layers: WatchedLayers) -> list[gradients.QueryKeyWeights]:
        """Check the options against the layers, and return the weights of queries and keys in each."""
        if layers.flow is not None or len(layers.names) > 1:  # a single block may be called several times
            check_layers(stop, len(layers.names))
        return [gradients.query_key_weights(module, queries, keys) for module in layers.modules]

    if len(named) > 1:
        check_layers(stop, len(named))
    earlier = model.__dict__.get(KEPT)
    if earlier is not None:  # as where a cell of a notebook runs again
        LOGGER.warning("the model was watched already: its earlier watcher is closed")
        earlier.close(quiet=True)
    sinks: list[RowSink] = open_sinks(to) if process_number() == 0 else []
    report = alarms if callable(alarms) else log_event if alarms and process_number() == 0 else None
    # a process that waits for one without `watch` would hang; sharded weights need all in any case
    together = is_sharded(model) if together is None else together
    parameters = Parameters(model) if detail in ("parameters", "all") else None
    return Watcher(model, named, settle, sinks, stop, report, options, parameters, every, start, automatic, together)
