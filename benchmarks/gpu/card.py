"""What the card does at its best: a copy of much memory, and large products of matrices in three number formats."""

import torch

from benchmarks.gpu.limits import Card
from benchmarks.gpu.rows import Rows
from benchmarks.gpu.timing import seconds_of

FORMATS = {"float32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}


def measure_card(rows: Rows, device: torch.device, tiny: bool) -> Card:
    about = 0.01 if tiny else 1.0
    source = torch.empty(2**20 if tiny else 2**31, dtype=torch.uint8, device=device).fill_(1)
    target = torch.empty_like(source)
    moved = 2 * source.numel() / seconds_of(lambda: target.copy_(source), device, about)
    rows.add("copy, read and written", moved, "bytes/s")
    for name in FORMATS:
        if name == "tf32" and device.type != "cuda":
            rows.add(f"product of matrices, {name}", status="skipped", reason="TF32 is a format of GPUs")
        else:
            rate = products(name, 128 if tiny else 8192, device, about)
            rows.add(f"product of matrices, {name}", rate, "operations/s")
    return Card(products("float32", 128 if tiny else 8192, device, about), moved)


def products(name: str, width: int, device: torch.device, about: float) -> float:
    """Operations a second in a product of two square matrices; random ones, since zeros are multiplied faster."""
    a, b = torch.randn(2, width, width, device=device).to(FORMATS[name])
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    try:
        return 2 * width**3 / seconds_of(lambda: a @ b, device, about)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
