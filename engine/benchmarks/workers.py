"""Measure rates of steps in two processes of one thread each, as jobs run on two cores.

Variants take turns, so that other work on the machine slows all of them alike.
"""

import gc
import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, TypeVar

PROCESSES, ROUNDS = 2, 9
Label = TypeVar("Label", bound=Hashable)


@dataclass(frozen=True)
class Variant:
    """A step to measure. The functions run in the processes, so `pickle` must be able to name them."""

    make: Callable[[], Callable[[], object]]  # returns the step
    units: float = 1.0  # that one step counts for
    setup: Callable[[], None] | None = None  # runs once, in processes that only variants with this setup use


def serve_steps(setup: Callable[[], None] | None, turn: Any, pipe: Any) -> None:
    """Make steps and repeat them on request, until the pipe sends None."""
    import torch

    torch.set_num_threads(1)
    if setup:
        setup()
    steps: dict[Hashable, Callable[[], object]] = {}
    for request, *arguments in iter(pipe.recv, None):
        if request == "forget":
            steps.clear()
            gc.collect()
        elif request == "make":
            label, make = arguments
            began = time.perf_counter()
            steps[label] = make()
            steps[label]()
            pipe.send(time.perf_counter() - began)
            steps[label]()
        else:
            label, seconds = arguments
            turn.wait()
            began, count = time.process_time(), 0
            while time.process_time() - began < seconds or count < 2:
                steps[label]()
                count += 1
            pipe.send(count / (time.process_time() - began))


class Pair:
    """Two processes that do the same at the same time."""

    def __init__(self, setup: Callable[[], None] | None) -> None:
        context = get_context("spawn")
        self.barrier = context.Barrier(PROCESSES)  # must live as long as the processes
        self.pipes, ends = zip(*(context.Pipe() for _ in range(PROCESSES)))
        arguments = [(setup, self.barrier, end) for end in ends]
        self.processes = [context.Process(target=serve_steps, args=args, daemon=True) for args in arguments]
        for process in self.processes:
            process.start()

    def send(self, *request: Any) -> None:
        for pipe in self.pipes:
            pipe.send(request)

    def ask(self, *request: Any) -> list[float]:
        """Send a request, and return the answer of each process."""
        self.send(*request)
        return [pipe.recv() for pipe in self.pipes]

    def end(self) -> None:
        """End both processes, also after a failure of one, when the other waits for it."""
        for pipe, process in zip(self.pipes, self.processes):
            with suppress(BrokenPipeError):
                pipe.send(None)
            process.join(10)
            process.terminate()


class Workers:
    """A pair of processes for each setup. Use it in a `with` statement."""

    def __init__(self) -> None:
        self.pairs: dict[Callable[[], None] | None, Pair] = {}
        self.first_step: dict[Hashable, float] = {}  # seconds by the clock until it ended, in the slower process

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        for pair in self.pairs.values():
            pair.end()

    def rates(self, variants: Mapping[Label, Variant], tiny: bool, seconds: float = 0.3) -> dict[Label, float]:
        """Return units a second of both processes together, the median over rounds of some seconds."""
        rounds, seconds = (1, 0.01) if tiny else (ROUNDS, seconds)
        pairs = {}
        for label, variant in variants.items():
            if variant.setup not in self.pairs:
                self.pairs[variant.setup] = Pair(variant.setup)
            pairs[label] = self.pairs[variant.setup]
            self.first_step[label] = max(pairs[label].ask("make", label, variant.make))
        measured: dict[Label, list[float]] = {label: [] for label in variants}
        for _ in range(rounds):
            for label, variant in variants.items():
                measured[label].append(variant.units * sum(pairs[label].ask("run", label, seconds)))
        for pair in self.pairs.values():
            pair.send("forget")
        return {label: statistics.median(values) for label, values in measured.items()}
