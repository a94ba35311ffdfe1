"""Other number formats for products: the error of the first gradient against float64, and the rate."""

from contextlib import nullcontext
from dataclasses import replace

import torch
from torch import Tensor

from benchmarks.gpu.rows import Rows
from benchmarks.gpu.shapes import Setting, settings
from benchmarks.gpu.timing import seconds_of
from rankfall.train.objectives._base import Samples

FORMATS = ("float32", "tf32", "bf16")


def measure_precision(rows: Rows, device: torch.device, tiny: bool) -> None:
    for net in list(settings().values())[: 1 if tiny else None]:
        count = 2 if tiny else {"sorting": 256, "hull": 256, "mlm": 64, "mlm_gpu": 4}[net.name]
        batch = net.batch(count, device)
        exact = gradient(net, batch, device, torch.float64)
        for name in FORMATS:
            if rows.left <= 0:
                return
            one_format(rows, net, batch, device, name, exact, 0.01 if tiny else 0.5)


def one_format(
    rows: Rows,
    net: Setting,
    batch: Samples,
    device: torch.device,
    name: str,
    exact: tuple[Tensor, Tensor],
    about: float,
) -> None:
    count = len(batch.inputs)
    about_it = {"shape": net.name, "members": count, "dropout": 0.0, "engine": "plain"}
    if name == "tf32" and device.type != "cuda":
        rows.add(f"error of the gradient, {name}", status="skipped", reason="TF32 is a format of GPUs", **about_it)
        return
    members, objective = net.alike(count, device, 0.0), net.objective()
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    try:
        with torch.autocast(device.type, torch.bfloat16, cache_enabled=False) if name == "bf16" else nullcontext():
            found, loss = gradient(net, batch, device, torch.float32)
            rate = count / seconds_of(lambda: members.step(objective, batch), device, about)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
    error = ((found - exact[0]).norm(dim=1) / exact[0].norm(dim=1)).max()
    rows.add(f"error of the gradient, {name}", float(error), "relative to its norm", **about_it)
    off = ((loss - exact[1]) / exact[1]).abs().max()
    rows.add(f"error of the loss, {name}", float(off), "relative", **about_it)
    rows.add(f"rate, {name}", rate, "member-steps/s", **about_it)


def gradient(net: Setting, batch: Samples, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Of each member's own loss at the start (K, P), and the loss (K,)."""
    members = net.alike(len(batch.inputs), device, 0.0)
    if dtype == torch.float64:
        members.module.double()
        members.parameters = list(members.module.parameters())
        members.grads = members.grads.double()
        inputs = batch.inputs.double() if batch.inputs.is_floating_point() else batch.inputs
        batch = replace(batch, inputs=inputs)
    loss = net.objective()(members.module, batch).loss
    members.differentiate(loss)
    return members.grads.double(), loss.detach().double()
