"""The object that `watch` returns. It counts steps, measures one pass of each logged step, and passes rows to sinks."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from rankfall.errors import RankfallError
from rankfall.watch.alarms import Event, StopCondition
from rankfall.watch.capture import Capture
from rankfall.watch.compiled import TRACING
from rankfall.watch.gradients import Parameters, QueryKeyWeights
from rankfall.watch.hooks import OptimizerClock
from rankfall.watch.layers import WatchedLayers
from rankfall.watch.outbox import Outbox
from rankfall.watch.records import CaptureOptions, PassRecord
from rankfall.watch.rows import Log, log_of, sum_and_count
from rankfall.watch.sinks import RowSink

PATIENCE = timedelta(minutes=5)  # for other processes, which may be slow in a step
KEPT = "_rankfall_watcher"  # attribute of a model


class Watcher:
    """A watcher of one model. It counts the steps of the model's optimiser or, once `step()` is called, the calls of `step()`."""

    def __init__(
        self,
        model: nn.Module,
        named: Mapping[str, nn.Module],
        settle: Callable[[WatchedLayers], list[QueryKeyWeights]],
        sinks: list[RowSink],
        stop: list[StopCondition],
        report: Callable[[Event], Any] | None,
        options: CaptureOptions,
        parameters: Parameters | None,
        every: int,
        start: int,
        automatic: bool,
        together: bool,
    ) -> None:
        self.model, self.together = model, together
        self.outbox, self.every = Outbox(sinks, stop, report), every
        self.steps, self.first, self.logs = start, start + 1, 0
        self.parameters = parameters
        self.waiting: Log | None = None  # log of a step whose update is still to be measured
        self.capture = Capture(model, named, options, settle, self.remove, self.begin_pass)
        self.armed = self.closed = self.counted = self.recompiled = False
        self.misses = 0
        self.clock = OptimizerClock(model, self.before_step, self.after_step) if automatic else None
        # The model holds a reference, so that a watcher lives as long as its model unless it is closed.
        model.__dict__[KEPT] = self
        self.finish = weakref.finalize(self, finish, self.clock, self.outbox)
        self.arm()

    @property
    def joined(self) -> bool:
        """Return whether the sums of several processes are added."""
        return self.together and process_count() > 1

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"every {self.every} steps"
        return f"Watcher({self.capture.summary()}, {state}, step {self.steps}, {self.logs} logs)"

    def __enter__(self) -> Watcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(quiet=kind is not None)

    def __deepcopy__(self, memo: Any) -> None:
        """Return None: a copy of the model is not watched."""

    def __reduce__(self) -> Any:
        return type(None), ()  # a saved model is not watched either

    def step(self, number: int | None = None) -> None:
        """Count a step. Call this once per step, before or after the update, while gradients exist.

        `number`: the step's number, if the caller counts steps.
        """
        if self.clock is not None:  # from now on these calls count the steps
            already = self.steps >= self.first
            self.clock.remove()
            self.clock = None
            if already and number is None:  # the optimiser's step before this call was the same step
                return
        if number is not None:
            self.steps = number - 1
        self.count()

    def before_step(self, optimizer: Optimizer) -> None:
        """Measure gradients before the update, which may change them."""
        if self.armed and self.capture.take() is not None:
            self.count(optimizer)
            self.counted = True

    def after_step(self, optimizer: Optimizer) -> None:
        if not self.counted:
            self.count(optimizer)
        self.counted = False
        self.put_updated()

    def count(self, optimizer: Optimizer | None = None) -> None:
        if self.closed:
            return
        self.put_updated()
        self.steps += 1
        self.outbox.send()
        missed = False
        if self.armed:
            record = self.capture.take()
            self.disarm()
            if record is None:
                self.count_miss()
                missed = True
            else:  # a fused optimiser of mixed precision receives gradients times a loss scale
                scale = getattr(optimizer, "grad_scale", None)
                self.log(record, 1.0 if scale is None else float(scale))
        if missed or (self.steps + 1) % self.every == 0:
            self.arm()

    def arm(self) -> None:
        """Measure the next step, in every process."""
        if self.closed:
            return
        self.armed = True
        self.capture.attach()

    def disarm(self) -> None:
        self.armed = False
        self.capture.detach()

    def begin_pass(self) -> None:
        if self.parameters is not None:
            self.put_updated()
            self.parameters.keep_weights()

    def log(self, record: PassRecord, scale: float) -> None:
        assert self.capture.layers is not None
        heads = self.capture.options.heads
        log = log_of(record, self.capture.layers, self.capture.weights, self.steps, scale, self.joined, heads)
        if self.parameters is None:
            self.put(log)
        else:
            self.parameters.keep_gradients(scale, self.joined)
            self.waiting = log
            self.put_updated(now=False)  # the user may count a step after its update

    def put_updated(self, now: bool = True) -> None:
        """Pass on the log that waits for the update of its step. `now`: even if no weight has changed."""
        if self.waiting is None or self.parameters is None or not (now or self.parameters.are_updated()):
            return
        log, self.waiting = self.waiting, None
        squares = self.parameters.take_squares(self.joined)
        log.names, log.parameters = self.parameters.names, sum_and_count(squares[..., None])
        self.put(log)

    def put(self, log: Log) -> None:
        if self.joined:
            for sums in (log.sums, *log.heads, log.parameters):
                if sums is not None:
                    add_over_processes(sums, log.step)
        self.outbox.put(log)
        if not self.logs:  # so that a mistake is reported in the step that shows it
            self.outbox.send(wait=True)
        self.logs += 1

    def count_miss(self) -> None:
        """Count a step without a measurable pass. Raise an error if no log exists yet and the model was not called as expected."""
        if not self.recompiled and (self.capture.traced or TRACING.met):
            self.recompiled, TRACING.met = True, False
            self.capture.trace()
            torch.compiler.reset()  # code that was compiled before has no operators
            return
        self.misses += 1
        with_gradients, without = sum(self.capture.passes[1:]), self.capture.passes[0]
        if not self.logs and without and not with_gradients:
            raise RankfallError(
                f"step {self.steps}: the model was called {without} times, always without gradients (torch.no_grad, as in evaluation), "
                "but training passes have gradients: pass passes='all' to measure these too"
            )
        if not self.logs and (self.capture.loose if with_gradients else self.misses > 1):
            raise RankfallError(
                f"step {self.steps}: the watched layers, {self.capture.summary()}, were not called in {self.misses} steps: pass the model "
                "that is trained, not a copy, or name the layers that it uses by blocks="
            )
        self.capture.loosen()

    def remove(self) -> None:
        """Remove all hooks. Written rows stay."""
        self.disarm()
        if self.capture.traced is not None:
            self.capture.traced.remove()
        if self.clock is not None:
            self.clock.remove()
            self.clock = None

    def close(self, quiet: bool = False) -> None:
        """Remove all hooks and close the sinks. Warn if no step was counted, unless `quiet`."""
        if self.closed:
            return
        self.put_updated()
        unseen = self.clock is not None and self.steps < self.first and process_number() == 0 and not quiet
        self.remove()
        self.closed = True
        self.model.__dict__.pop(KEPT, None)
        self.finish()
        if unseen:
            warnings.warn(
                "rankfall.watch has counted no step, so nothing was written: no optimiser of torch.optim has updated the model. "
                "If something else updates it, call step() of the watcher once per step",
                stacklevel=2,
            )


def finish(clock: OptimizerClock | None, outbox: Outbox) -> None:
    """Remove hooks, pass on the last rows and close sinks, also when a watcher is garbage-collected without `close`."""
    if clock is not None:
        clock.remove()
    outbox.close()


def process_number() -> int:
    """Return the rank of this process in its group, or 0 without a group."""
    distributed = torch.distributed
    return int(distributed.get_rank()) if distributed.is_available() and distributed.is_initialized() else 0


def process_count() -> int:
    distributed = torch.distributed
    return int(distributed.get_world_size()) if distributed.is_available() and distributed.is_initialized() else 1


def add_over_processes(sums: Tensor, step: int) -> None:
    """Add up the sums of all processes, in place, by one collective."""
    work = torch.distributed.all_reduce(sums, async_op=True)
    try:
        work.wait(PATIENCE)
    except RuntimeError as error:
        raise RankfallError(
            f"step {step}: the other processes log no such step: call watch() in every process, with the same options; or pass "
            f"together=False, and the first process measures its part ({str(error).splitlines()[0]})"
        ) from error
