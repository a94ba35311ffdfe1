"""Check and measure steps whose passes PyTorch compiles, which fuses operations, before they are recorded."""

import time

import torch

from benchmarks.gpu.card import seconds_of, wait
from benchmarks.gpu.limits import Card, count_work
from benchmarks.gpu.rows import Rows
from benchmarks.networks import Setting, gpu_settings
from rankfall.train.dropout import DeviceDropout

DIFFERENCE = 1e-4  # of the gradient, relative to its norm: sums have another order
COMPILING = 25.0  # seconds that a network takes, about


def measure_compiled(rows: Rows, device: torch.device, card: Card, tiny: bool) -> None:
    for name, members in (("sorting", 1024), ("hull", 256)):
        if tiny or rows.seconds_left > COMPILING:
            measure_network(rows, gpu_settings()[name], device, card, 2 if tiny else members, tiny)


def measure_network(rows: Rows, net: Setting, device: torch.device, card: Card, count: int, tiny: bool) -> None:
    rate = net.training.dropout
    about = {"shape": net.name, "members": count, "dropout": rate, "engine": "compiled"}
    members, batch, objective = net.equal_members(count, device, rate), net.batch(count, device), net.objective()
    dropout = DeviceDropout(members.seeds, rate, device)
    members.dropout = dropout  # also on a processor, since a compiler cannot follow NumPy's
    work = count_work(lambda: members.step(objective, batch), members)

    def gradient() -> torch.Tensor:
        members.differentiate(objective(members.module, batch, dropout.at(7)).loss)
        return members.grads.clone()

    expected = gradient()
    began = time.perf_counter()
    members.module.compile(dynamic=False, backend="aot_eager" if tiny else "inductor")
    compiled = gradient()
    wait(device)
    rows.add("seconds to compile", time.perf_counter() - began, "s", **about)
    error = ((compiled - expected).norm(dim=1) / expected.norm(dim=1)).max()
    rows.check("gradient, compiled", float(error), DIFFERENCE, **about)
    members.engine = net.engine("captured", members) if device.type == "cuda" else None
    seconds = seconds_of(lambda: members.step(objective, batch), device, 0.02 if tiny else 1.0)
    rows.add("rate", count / seconds, "member-steps/s", **card.limits(work), **about)
