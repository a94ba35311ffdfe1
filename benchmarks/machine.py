"""Milliseconds of a member-step by autograd on the stack and by the machine, in turn in one process on one thread.

python -m benchmarks.machine [NETWORK ...]

Sorting (8 tokens, 10 symbols), depth 6, width 48, batches of 30, Adam, no dropout, 16 members. The networks are kinds that the hand-written
engine does not serve, and two attentions as somebody else would write them (`tests/train/machine/own.py`).
"""

import sys
import time
from pathlib import Path
from statistics import median

import torch

from rankfall.design import Architecture, Component, Training
from rankfall.nets.network import Shape
from rankfall.run.jobs.processor import processor
from rankfall.streams import stream
from rankfall.train import recipe
from rankfall.train.machine.engine import Machined
from rankfall.train.members import Members
from rankfall.train.objectives._base import Samples

MEMBERS, ROUNDS, SECONDS = 16, 7, 1.0
SHAPE = Shape("tokens", "classes", 8, 10, 10)
ENDS = {"embedding": Component("token"), "head": Component("classifier"), "depth": 6, "width": 48, "heads": 2}
TRAINING = Training("t", objective=Component("classes"), epochs=1, batch=30)
NETWORKS = {
    "l2 + rms": {"normaliser": "l2", "norm": "rms", "mlp": "gelu"},
    "gau": {"attention": "gau", "norm": "rms"},
    "linear attention": {"attention": "linear", "mlp": "gelu"},
    "gate": {"attention": "own:Gated", "mlp": "gelu"},
    "delta rule": {"attention": "own:Delta", "mlp": "gelu"},
}
OPTIONS = {"gau": {"key_width": 24}}


def stack(parts: dict[str, str], machine: bool) -> tuple[Members, Samples]:
    named = {kind: Component(name, OPTIONS.get(name, {})) for kind, name in parts.items()}
    architecture = Architecture("a", **ENDS, **named)
    members = recipe.initial(architecture, SHAPE, range(MEMBERS), [TRAINING] * MEMBERS, torch.device("cpu"))
    if machine:
        members.engine = Machined(members, architecture, SHAPE, TRAINING)
    drawn = torch.from_numpy(stream(0, "benchmark").integers(10, size=(MEMBERS, 30, 8)))
    return members, Samples(drawn, drawn.sort(-1).values, members.seeds, ("train", 0), 10, learned=True)


def compare(parts: dict[str, str]) -> tuple[list[float], float]:
    """Milliseconds of a member-step by each engine, and seconds until the machine's first step was taken."""
    objective = recipe.objective(TRAINING)
    stacks = [stack(parts, machine) for machine in (False, True)]
    began = time.process_time()
    for members, batch in reversed(stacks):
        members.step(objective, batch)
        if members.engine:
            first = time.process_time() - began
    taken: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for times, (members, batch) in zip(taken, stacks):
            began, steps = time.process_time(), 0
            while time.process_time() - began < SECONDS:
                members.step(objective, batch)
                steps += 1
            times.append(1000 * (time.process_time() - began) / steps / MEMBERS)
    return [median(times) for times in taken], first


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "train" / "machine"))
    torch.set_num_threads(1)
    print(processor())
    for name in sys.argv[1:] or NETWORKS:
        (plain, machine), first = compare(NETWORKS[name])
        print(
            f"{name:18} autograd {plain:6.2f} ms, machine {machine:6.2f} ms, {plain / machine:.1f} times; first step after {first:.1f} s"
        )


if __name__ == "__main__":
    main()
