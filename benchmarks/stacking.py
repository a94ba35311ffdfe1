"""Milliseconds a member-step of the sorting network, as a clean module one at a time and in stacks, side by side in one run.

    make bench

Every line is the median over rounds in which all variants take their turn, so that a noisy moment hits them alike. `2 x 1` means two
processes of one thread each, which is how the workflow runs its jobs on two cores; its figure is wall time by all member-steps of both.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any

import torch

SECONDS = 1.0  # of one turn


def stacked_step(members: int, dropout: float) -> Callable[[], None]:
    from rankfall.nets.network import Shape
    from rankfall.plan import make_plan
    from rankfall.streams import stream
    from rankfall.tasks.sorting import sorting
    from rankfall.train import recipe
    from rankfall.train.data import Data
    from rankfall.train.objectives.classes import classes

    plan = make_plan(
        {
            "tasks": {"sorting": {}},
            "architectures": {"SAN+skip": {}},
            "trainings": {"bench": {"lr": 1e-3, "epochs": 1, "batch": 30, "dropout": dropout}},
            "grid": [{"task": "sorting", "architecture": "SAN+skip", "training": "bench", "seed": f"0..{members - 1}"}],
        }
    )
    cells = list(plan.cells)
    cpu = torch.device("cpu")
    seeds, trainings = [cell.seed for cell in cells], [cell.training for cell in cells]
    shape = Shape("tokens", "classes", 8, 10, 10)
    stack = recipe.initial(cells[0].architecture, shape, seeds, trainings, cpu)
    datasets = [sorting(stream(cell.seed, "data"), train=30, test=1) for cell in cells]
    data = Data.of(datasets, torch.float32, cpu)
    (batch,) = data.epoch(seeds, 0, 30, shuffle=False)
    return lambda: stack.step(classes, batch) and None


def make(members: int, dropout: float) -> Callable[[], None]:
    """A step of `members` stacked networks; 0 stands for the clean module."""
    if members:
        return stacked_step(members, dropout)
    from benchmarks.clean import make_step

    return make_step(dropout)  # type: ignore[return-value]


def worker(members: int, dropout: float, threads: int, turn: Any, pipe: Any) -> None:
    """Waits for its turn, steps for a while, says how many steps it made and how long it took."""
    from rankfall.train.device import keep_pages

    torch.set_num_threads(threads)
    if members:  # the clean module runs as a user's script would
        keep_pages()
    step = make(members, dropout)
    for _ in range(3):
        step()
    pipe.send("ready")
    while pipe.recv() == "go":
        turn.wait()
        began, steps = time.perf_counter(), 0
        while time.perf_counter() - began < SECONDS or steps < 2:
            step()
            steps += 1
        pipe.send((time.perf_counter() - began) / (steps * max(1, members)))
    pipe.close()


def measure(sizes: list[int], dropout: float, rounds: int) -> dict[str, float]:
    context = get_context("spawn")
    variants: dict[str, list[Any]] = {}
    for members in [0, *sizes]:
        for threads, processes in ((2, 1), (1, 2)):
            name = f"{'clean module' if not members else f'stack of {members}'}, {processes} x {threads}"
            barrier = context.Barrier(processes)
            variants[name] = []
            for _ in range(processes):
                ours, theirs = context.Pipe()
                context.Process(target=worker, args=(members, dropout, threads, barrier, theirs), daemon=True).start()
                variants[name].append(ours)
            for pipe in variants[name]:
                pipe.recv()
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, pipes in variants.items():
            for pipe in pipes:
                pipe.send("go")
            # Processes run at the same time, so their rates add up.
            seconds[name].append(1 / sum(1 / pipe.recv() for pipe in pipes))
    for pipes in variants.values():
        for pipe in pipes:
            pipe.send("stop")
    return {name: 1e3 * statistics.median(values) for name, values in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 4, 16, 64, 256])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    results = {dropout: measure(args.sizes, dropout, args.rounds) for dropout in (0.0, 0.1)}
    if args.json:
        json.dump(results, sys.stdout, indent=1)
        return
    print("milliseconds a member-step (times as fast as the clean module one at a time on two threads)")
    print(f"{'processes x threads':28}" + "".join(f"{f'dropout {dropout}':>20}" for dropout in results))
    for name in results[0.0]:
        cells = [(r[name], r["clean module, 1 x 2"] / r[name]) for r in results.values()]
        print(f"{name:28}" + "".join(f"{ms:12.2f} ({ratio:4.1f})" for ms, ratio in cells))
