"""Measure other number formats for products: the rate, and the error of the first gradient against float64."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu.limits import FORMATS, seconds_of
from benchmarks.gpu.rows import Rows
from benchmarks.networks import Setting, gpu_settings
from rankfall.train.objectives._base import Samples

MEMBERS = {"sorting": 256, "hull": 256, "mlm": 64, "mlm_gpu": 4}


def measure_precision(rows: Rows, device: torch.device, tiny: bool) -> None:
    """Measure each number format for products, for each network."""
    for net in list(gpu_settings().values())[: 1 if tiny else None]:
        count = 2 if tiny else MEMBERS[net.name]
        batch = net.batch(count, device)
        exact = gradient(net, batch, device, torch.float64)
        for name in FORMATS:
            labels = {"shape": net.name, "members": count, "dropout": 0.0, "engine": "plain"}
            if rows.seconds_left <= 0:
                return
            if name == "tf32" and device.type != "cuda":
                rows.add(f"error of the gradient, {name}", status="skipped", reason="a format of GPUs", **labels)
            else:
                measure_format(rows, net, batch, device, name, exact, 0.01 if tiny else 0.5, labels)


def measure_format(
    rows: Rows, net: Setting, batch: Samples, device: torch.device, name: str,
    exact: tuple[Tensor, Tensor], length: float, labels: dict[str, Any],
) -> None:  # fmt: skip
    """Measure one format for about `length` seconds."""
    count = len(batch.inputs)
    members, objective = net.equal_members(count, device, 0.0), net.objective()
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    try:
        with torch.autocast(device.type, torch.bfloat16, cache_enabled=False) if name == "bf16" else nullcontext():
            rounded, loss = gradient(net, batch, device, torch.float32)
            rate = count / seconds_of(lambda: members.step(objective, batch), device, length)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
    error = ((rounded - exact[0]).norm(dim=1) / exact[0].norm(dim=1)).max()
    rows.add(f"error of the gradient, {name}", float(error), "relative to its norm", **labels)
    rows.add(f"error of the loss, {name}", float(((loss - exact[1]) / exact[1]).abs().max()), "relative", **labels)
    rows.add(f"rate, {name}", rate, "member-steps/s", **labels)


def gradient(net: Setting, batch: Samples, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the gradient (K, P) and loss (K,) of each member at the start, in float64."""
    members = net.equal_members(len(batch.inputs), device, 0.0)
    if dtype == torch.float64:
        members.module.double()
        members.parameters = list(members.module.parameters())
        members.grads = members.grads.double()
        inputs = batch.inputs.double() if batch.inputs.is_floating_point() else batch.inputs
        batch = replace(batch, inputs=inputs)
    loss = net.objective()(members.module, batch).loss
    members.differentiate(loss)
    return members.grads.double(), loss.detach().double()
