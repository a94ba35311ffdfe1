"""Time published grids: 4 architectures x 3 depths x 10 seeds of sorting and of convex hull, as 12 stacks each.

A stack of ten small networks leaves a GPU idle, so several train at the same time, each in a thread with its own stream.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import torch

from benchmarks.gpu.limits import wait
from benchmarks.gpu.rows import Rows
from benchmarks.networks import PARTS, Setting, gpu_settings
from rankfall.train.loop import Course, fit

PUBLISHED = {"sorting": (1000, 65), "hull": (10_000, 70)}  # samples and epochs
BATCH = 30  # samples of a step
THREAD = threading.local()  # `stream`: of the thread, None on a processor


def set_stream(device: torch.device) -> None:
    """Give this thread its own stream of the GPU."""
    THREAD.stream = torch.cuda.Stream(device) if device.type == "cuda" else None


class Late(Exception):
    """The deadline has passed."""


def time_grids(rows: Rows, device: torch.device, tiny: bool) -> None:
    """Time both published grids, each for its share of the section's time."""
    depths, seeds = ((1, 2), [0, 1]) if tiny else ((2, 6, 12), list(range(10)))
    for number, (name, published) in enumerate(PUBLISHED.items()):
        samples, epochs = (20, 2) if tiny else published
        nets = [gpu_settings()[name].with_parts(depth, parts) for parts in PARTS for depth in depths]
        deadline = time.monotonic() + rows.seconds_left / (len(PUBLISHED) - number)
        time_grid(rows, name, nets, seeds, device, samples, epochs, deadline)


def time_grid(
    rows: Rows, name: str, nets: list[Setting], seeds: list[int], device: torch.device,
    samples: int, epochs: int, deadline: float,
) -> None:  # fmt: skip
    """Train all cells, or as many steps as there is time for. On a GPU all twelve stacks train at the same time."""
    flight = 12 if device.type == "cuda" else 1
    wait(device)
    began = time.monotonic()
    with ThreadPoolExecutor(flight, initializer=set_stream, initargs=(device,)) as pool:
        steps = sum(pool.map(lambda net: train(net, seeds, device, samples, epochs, deadline), nets))
    wait(device)
    seconds, planned = time.monotonic() - began, len(nets) * epochs * -(-samples // BATCH)
    labels = {"shape": name, "members": len(seeds), "dropout": 0.1}
    rows.add(f"member-steps, {flight} stacks at once", steps * len(seeds) / seconds, "member-steps/s", **labels)
    cut = f"estimated from {steps} of {planned} steps of stacks, for lack of time" if steps < planned else ""
    rows.add(f"grid of {len(nets) * len(seeds)} cells", seconds * planned / steps, "s", reason=cut, **labels)


def train(net: Setting, seeds: list[int], device: torch.device, samples: int, epochs: int, deadline: float) -> int:
    """Train a stack until the deadline, and return its number of steps."""
    with torch.cuda.stream(THREAD.stream):
        members = net.members(seeds, device, epochs=epochs)
        members.engine = net.engine(net.engines(device)[-1], members)

        def after_step() -> None:
            if time.monotonic() > deadline:
                raise Late

        with suppress(Late):
            course = Course(epochs, BATCH)
            fit(members, net.data(seeds, device, samples), net.objective(), course, after_step=after_step)
        wait(device)
    return members.step_count
