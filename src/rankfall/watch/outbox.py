"""Logs on their way from the device to the sinks. A thread computes what takes long; rows leave in order, in the thread of the training."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from rankfall.watch.alarms import Alarms, Event, StopCondition
from rankfall.watch.rows import Log, finish_log
from rankfall.watch.sinks import RowSink

LOGGER = logging.getLogger("rankfall.watch")
THREAD = ThreadPoolExecutor(1, "rankfall.watch")
Rows = list[dict[str, Any]]


def start_thread() -> None:
    """Start the thread again in a forked process, which has none."""
    global THREAD
    THREAD = ThreadPoolExecutor(1, "rankfall.watch")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=start_thread)


class Outbox:
    """Pass the rows of each log to sinks, then to the alarms and to the conditions that stop a run."""

    def __init__(
        self, sinks: Sequence[RowSink], stop: Sequence[StopCondition], report: Callable[[Event], Any] | None
    ) -> None:
        self.sinks, self.stop, self.report = list(sinks), list(stop), report
        self.alarms = Alarms()
        self.waiting: deque[Future[Rows]] = deque()

    def put(self, log: Log) -> None:
        """Add a log. If there are conditions, wait for its rows, since conditions are checked before the weights change."""
        self.waiting.append(THREAD.submit(finish_log, log))
        self.send(wait=bool(self.stop))

    def send(self, wait: bool = False) -> None:
        """Pass on the rows that are ready; all of them if `wait`."""
        while self.waiting and (wait or self.waiting[0].done()):
            rows = self.waiting.popleft().result()
            for sink in self.sinks:
                sink.write(rows)
            if self.report is not None:
                for event in self.alarms.update(rows):
                    self.report(event)
            for condition in self.stop:
                condition.check(rows)

    def close(self) -> None:
        try:
            self.send(wait=True)
        finally:
            for sink in self.sinks:
                sink.close()


def log_event(event: Event) -> None:
    """Write an alarm as a warning of the logger `rankfall.watch`."""
    LOGGER.warning("step %d: %s", event.step, event.text)
