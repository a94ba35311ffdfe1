"""The paper's grids: 4 architectures x 3 depths x 10 seeds of sorting and of convex hull at their published sizes, as 12 stacks each.

A stack of ten small networks leaves a GPU idle, so several are trained at the same time, each by a thread with a stream of its own.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import torch

from benchmarks.gpu.rows import Rows
from benchmarks.gpu.shapes import PARTS, Setting, settings
from benchmarks.gpu.timing import wait
from rankfall.train.loop import Course, fit

PUBLISHED = {"sorting": (1000, 65), "hull": (10_000, 70)}  # samples and epochs
OWN = threading.local()  # a thread's stream; None on a processor


def take_stream(device: torch.device) -> None:
    OWN.stream = torch.cuda.Stream(device) if device.type == "cuda" else None


class Late(Exception):
    pass


def time_grids(rows: Rows, device: torch.device, tiny: bool) -> None:
    depths, seeds = ((1, 2), [0, 1]) if tiny else ((2, 6, 12), list(range(10)))
    for at, (name, (samples, epochs)) in enumerate(PUBLISHED.items()):
        samples, epochs = (20, 2) if tiny else (samples, epochs)
        nets = [settings()[name].at(depth, parts) for parts in PARTS for depth in depths]
        deadline = time.monotonic() + rows.left / (len(PUBLISHED) - at)
        for flight in (12,) if device.type == "cuda" else (1,):
            grid(rows, name, nets, seeds, device, samples, epochs, flight, deadline)


def grid(
    rows: Rows, name: str, nets: list[Setting], seeds: list[int], device: torch.device,
    samples: int, epochs: int, flight: int, deadline: float,
) -> None:  # fmt: skip
    """Trains all cells, `flight` stacks at the same time, or as many steps of them as there is time for."""
    data = {seed: nets[0].drawn(seed, samples) for seed in seeds}
    wait(device)
    began = time.monotonic()
    with ThreadPoolExecutor(flight, initializer=take_stream, initargs=(device,)) as pool:
        done = list(pool.map(lambda net: train(net, seeds, device, samples, epochs, deadline), nets))
    wait(device)
    seconds, cells = time.monotonic() - began, len(nets) * len(seeds)
    steps, whole = sum(done), len(nets) * epochs * -(-samples // 30)
    about_it = {"shape": name, "members": len(seeds), "dropout": 0.1}
    rows.add(f"member-steps, {flight} stacks at once", steps * len(data) / seconds, "member-steps/s", **about_it)
    cut = f"estimated from {steps} of {whole} steps of stacks, for want of time" if steps < whole else ""
    rows.add(f"grid of {cells} cells", seconds * whole / steps, "s", reason=cut, **about_it)


def train(net: Setting, seeds: list[int], device: torch.device, samples: int, epochs: int, deadline: float) -> int:
    """How many steps were made."""
    with torch.cuda.stream(OWN.stream):
        members = net.members(seeds, device, epochs=epochs)
        members.engine = net.engine(net.engines(device)[-1], members)

        def after_step() -> None:
            if time.monotonic() > deadline:
                raise Late

        with suppress(Late):
            fit(members, net.data(seeds, device, samples), net.objective(), Course(epochs, 30), after_step=after_step)
        wait(device)
    return members.step_count
