"""Milliseconds of a member-step by autograd, on one network alone and on a stack, and by the machine, in turn in one process on one thread.

python -m benchmarks.machine [NETWORK ...]

Sorting (8 tokens, 10 symbols), depth 6, width 48, batches of 30, Adam, no dropout, 16 members: the two networks that are published, and
other kinds, with two attentions as somebody else would write them (`tests/train/machine/own.py`). Convex
hull: 10 points. Masked text: depth 1, 32 tokens, 1,000 words. And a transformer of 24 layers.
"""

import atexit
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import torch

from rankfall.design import Architecture, Component, Training
from rankfall.nets.network import Shape
from rankfall.random_streams import stream
from rankfall.run.jobs.processor import processor
from rankfall.train import recipe
from rankfall.train.machine.engine import Machined
from rankfall.train.machine.forms import program_of
from rankfall.train.members import Members
from rankfall.train.objectives._base import Samples
from thousandfold.runtime import prepare_all

MEMBERS, ROUNDS, SECONDS = 16, 7, 1.0
OWN = Path(__file__).parents[1] / "tests" / "train" / "machine"
ENDS = {"embedding": Component("token"), "head": Component("classifier"), "depth": 6, "width": 48, "heads": 2}
TRAINING = Training("t", objective=Component("classes"), epochs=1, batch=30)
OPTIONS = {"gau": {"key_width": 24}}


SORTING = Shape("tokens", "classes", 8, 10, 10)
POINTS, TEXT = Shape("vectors", "classes", 10, 2, 2), Shape("tokens", "classes", 32, 1000, 1000)


@dataclass(frozen=True)
class Case:
    parts: dict[str, Any]
    shape: Shape = SORTING
    objective: str = "classes"


NETWORKS = {
    "SAN + skip": Case({"residual": "add"}),
    "transformer": Case({"mlp": "gelu"}),
    "hull": Case({"embedding": "linear", "position": "none"}, POINTS),
    "mlm": Case({"mlp": "gelu", "depth": 1}, TEXT, "masked_tokens"),
    "l2 + rms": Case({"normaliser": "l2", "norm": "rms", "mlp": "gelu"}),
    "gau": Case({"attention": "gau", "norm": "rms"}),
    "linear attention": Case({"attention": "linear", "mlp": "gelu"}),
    "gate": Case({"attention": "own:Gated", "mlp": "gelu"}),
    "delta rule": Case({"attention": "own:Delta", "mlp": "gelu"}),
    "24 layers": Case({"mlp": "gelu", "depth": 24}),
}


def stack_of(case: Case, engine: str, count: int, dropout: float = 0.0) -> tuple[Members, Any, Samples]:
    """So many members, their objective, and a batch for them."""
    named = {k: Component(v, OPTIONS.get(v, {})) if isinstance(v, str) else v for k, v in case.parts.items()}
    architecture, shape = Architecture("a", **{**ENDS, **named}), case.shape
    training = replace(TRAINING, objective=Component(case.objective), dropout=dropout)
    members = recipe.initial(architecture, shape, range(count), [training] * count, torch.device("cpu"))
    if engine == "machine":
        members.engine = Machined(members, architecture, shape, training)
    return members, recipe.objective(training), batch_of(shape, members)


def stack(case: Case, engine: str, count: int) -> Callable[[], Any]:
    """Takes a step of so many members."""
    members, objective, batch = stack_of(case, engine, count)
    return lambda: members.step(objective, batch)


def batch_of(shape: Shape, members: Members) -> Samples:
    rng, sizes = stream(0, "benchmark"), (len(members), TRAINING.batch, shape.length)
    if shape.inputs == "vectors":
        inputs = torch.from_numpy(rng.normal(size=(*sizes, shape.size_in))).float()
        return Samples(
            inputs, torch.from_numpy(rng.integers(2, size=sizes)), members.seeds, ("train", 0), 2, learned=True
        )
    drawn = torch.from_numpy(rng.integers(5, shape.size_in, size=sizes))
    return Samples(drawn, drawn.sort(-1).values, members.seeds, ("train", 0), shape.size_in, 5, learned=True)


def step(name: str, count: int, dropout: float) -> Callable[[], Any]:
    """By the machine, of so many members, where no program is kept."""
    sys.path.insert(0, str(OWN))
    forget_programs()
    members, objective, batch = stack_of(NETWORKS[name], "machine", count, dropout)
    return lambda: members.step(objective, batch)


@cache
def forget_programs() -> None:
    """The machine itself is kept: it is compiled once for all networks."""
    prepare_all()  # from the usual cache
    folder = tempfile.mkdtemp(prefix="rankfall-programs-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["XDG_CACHE_HOME"] = folder


VARIANTS = {"machine": MEMBERS, "autograd on the stack": MEMBERS, "autograd alone": 1}


def begin(case: Case) -> tuple[Callable[[], Any], float]:
    """Steps of the machine, and the seconds until the first was taken, in a job that knows no program."""
    program_of.cache_clear()
    began = time.process_time()
    step = stack(case, "machine", MEMBERS)
    step()
    return step, time.process_time() - began


def compare(case: Case) -> tuple[dict[str, float], float, float]:
    """Milliseconds of a member-step by each, and seconds until the machine's first step was taken: the first time, and where the program
    is kept."""
    _, first = begin(case)
    step, again = begin(case)
    steps = {"machine": step}
    steps |= {name: stack(case, name, count) for name, count in VARIANTS.items() if name != "machine"}
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(ROUNDS):
        for name, step in steps.items():
            began, count = time.process_time(), 0
            while time.process_time() - began < SECONDS:
                step()
                count += 1
            taken[name].append(1000 * (time.process_time() - began) / count / VARIANTS[name])
    return {name: median(times) for name, times in taken.items()}, first, again


def main() -> None:
    sys.path.insert(0, str(OWN))
    torch.set_num_threads(1)
    print(processor())
    forget_programs()
    report(sys.argv[1:] or list(NETWORKS))


def report(names: Sequence[str]) -> None:
    for name in names:
        found, first, again = compare(NETWORKS[name])
        machine = found.pop("machine")
        others = ", ".join(f"{variant} {ms:6.2f} ms ({ms / machine:.1f} times)" for variant, ms in found.items())
        print(
            f"{name:18} machine {machine:6.2f} ms, {others}; first step after {first:.1f} s, again {again:.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
