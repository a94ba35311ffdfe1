"""Two processes of one thread each, which is how jobs run on two cores: variants take turns in them, so that a noisy moment hits all."""

import gc
import statistics
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, TypeVar

PROCESSES = 2
Label = TypeVar("Label", bound=Hashable)


@dataclass(frozen=True)
class Variant:
    """What is repeated: a function, by its name, that returns the step; `units` are counted for each step."""

    make: str  # benchmarks' module:function
    given: tuple[Any, ...] = ()
    units: float = 1.0
    ours: bool = True  # with the memory settings of a job; else as a user's script runs


def work(paths: list[str], ours: bool, turn: Any, pipe: Any) -> None:
    """Makes steps, and repeats one for some seconds of a processor when told to."""
    sys.path[:0] = paths
    try:
        from rankfall.run.keys import loader  # type: ignore[import-not-found, unused-ignore]  # of earlier versions
    except ImportError:
        pass
    else:
        loader.install()
    import importlib

    import torch

    from rankfall.train.device import keep_pages

    torch.set_num_threads(1)
    if ours:
        keep_pages()
    steps: dict[Hashable, Callable[[], object]] = {}
    for order, *rest in iter(pipe.recv, None):
        if order == "forget":
            steps.clear()
            gc.collect()
        elif order == "make":
            name, variant = rest
            began = time.perf_counter()
            module, _, function = variant.make.partition(":")
            steps[name] = getattr(importlib.import_module(f"benchmarks.{module}"), function)(*variant.given)
            steps[name]()
            pipe.send(time.perf_counter() - began)
            steps[name]()
        else:
            name, seconds = rest
            turn.wait()
            began, count = time.process_time(), 0
            while time.process_time() - began < seconds or count < 2:
                steps[name]()
                count += 1
            pipe.send(count / (time.process_time() - began))


class Pair:
    def __init__(self, ours: bool) -> None:
        context = get_context("spawn")
        self.barrier = barrier = context.Barrier(PROCESSES)  # lives as long as the pair, which finds it by name
        self.pipes, self.processes = [], []
        for _ in range(PROCESSES):
            near, far = context.Pipe()
            process = context.Process(target=work, args=(sys.path, ours, barrier, far), daemon=True)
            process.start()
            self.pipes.append(near)
            self.processes.append(process)

    def tell(self, *order: Any) -> None:
        for pipe in self.pipes:
            pipe.send(order)

    def answers(self) -> list[Any]:
        return [pipe.recv() for pipe in self.pipes]

    def end(self) -> None:
        """Also after a failure, when some may have ended and others wait for them."""
        for pipe, process in zip(self.pipes, self.processes):
            with suppress(BrokenPipeError):
                pipe.send(None)
            process.join(10)
            process.terminate()


class Workers:
    """One pair for our steps and one for those of a user's script."""

    def __init__(self) -> None:
        self.pairs = {ours: Pair(ours) for ours in (True, False)}
        # Seconds by a clock until a variant's first step ended, the longer of both processes.
        self.seconds_before: dict[Hashable, float] = {}

    def rates(self, variants: Mapping[Label, Variant], rounds: int = 5, seconds: float = 0.3) -> dict[Label, float]:
        """Return units a second of both processes together: the median over rounds in which every variant takes its turn."""
        for name, variant in variants.items():
            self.pairs[variant.ours].tell("make", name, variant)
            self.seconds_before[name] = max(self.pairs[variant.ours].answers())
        found: dict[Label, list[float]] = {name: [] for name in variants}
        for _ in range(rounds):
            for name, variant in variants.items():
                self.pairs[variant.ours].tell("go", name, seconds)
                found[name].append(variant.units * sum(self.pairs[variant.ours].answers()))
        for pair in self.pairs.values():
            pair.tell("forget")
        return {name: statistics.median(values) for name, values in found.items()}


@contextmanager
def workers() -> Iterator[Workers]:
    made = Workers()
    try:
        yield made
    finally:
        for pair in made.pairs.values():
            pair.end()
