"""Steps whose passes PyTorch has compiled, which fuses operations, and then recorded: are they the same, and how fast?"""

import time

import torch

from benchmarks.gpu.limits import Card, work_of
from benchmarks.gpu.rows import Rows
from benchmarks.gpu.shapes import Setting, settings
from benchmarks.gpu.timing import seconds_of, wait
from rankfall.train.dropout import DeviceDropout

DIFFERENCE = 1e-4  # of the gradient, relative to its norm: sums in another order
COMPILING = 25.0  # seconds of a shape, about


def measure_compiled(rows: Rows, device: torch.device, card: Card, tiny: bool) -> None:
    for name, members in (("sorting", 1024), ("hull", 256)):
        if tiny or rows.left > COMPILING:
            one_shape(rows, settings()[name], device, card, 2 if tiny else members, tiny)


def one_shape(rows: Rows, net: Setting, device: torch.device, card: Card, count: int, tiny: bool) -> None:
    about_it = {"shape": net.name, "members": count, "dropout": net.training.dropout, "engine": "compiled"}
    members, batch = net.alike(count, device, net.training.dropout), net.batch(count, device)
    objective, drop = net.objective(), DeviceDropout(members.seeds, net.training.dropout, device)
    members.dropout = drop  # also on a processor: a compiler cannot follow NumPy's
    work = work_of(lambda: members.step(objective, batch), members)

    def gradient() -> torch.Tensor:
        members.differentiate(objective(members.module, batch, drop.at(7)).loss)
        return members.grads.clone()

    expected = gradient()
    began = time.perf_counter()
    members.module.compile(dynamic=False, backend="aot_eager" if tiny else "inductor")
    found = gradient()
    wait(device)
    rows.add("seconds to compile", time.perf_counter() - began, "s", **about_it)
    error = ((found - expected).norm(dim=1) / expected.norm(dim=1)).max()
    rows.check("gradient, compiled", float(error), DIFFERENCE, **about_it)
    members.engine = net.engine("captured", members) if device.type == "cuda" else None
    seconds = seconds_of(lambda: members.step(objective, batch), device, 0.02 if tiny else 1.0)
    rows.add("rate", count / seconds, "member-steps/s", **card.limits(work), **about_it)
