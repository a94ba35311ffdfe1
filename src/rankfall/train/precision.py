"""The number format of matrix products, if it is not that of the weights: TF32 has 10 bits of fraction, bfloat16 has 7.

Weights, gradients, the optimiser and sums over many values stay in float32. `benchmarks/gpu.sh` measures the error of gradients.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from rankfall.errors import RankfallError

FULL, TF32, BF16 = "full", "tf32", "bf16"


@contextmanager
def products(precision: str, device: torch.device) -> Iterator[None]:
    """Compute matrix products in this format within the context."""
    if precision == TF32:
        if device.type != "cuda":
            raise RankfallError(
                f"precision: {TF32!r} is a number format of GPUs, and this is computed on a {device.type}"
            )
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            yield
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False
    elif precision == BF16:
        # Weights change in place between steps, so their casts must not be cached.
        with torch.autocast(device.type, torch.bfloat16, cache_enabled=False):
            yield
    else:
        yield
