"""Settings of the machine for a job: device, threads, number formats, memory."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from rankfall.errors import RankfallError

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # glibc's malloc.h
FULL, TF32, BF16 = "full", "tf32", "bf16"  # number formats of matrix products


def prepare(name: str, threads: int, insist: bool = True) -> torch.device:
    """Set up this process and return its device.

    Without `insist`, return the CPU if a GPU is configured and none is available: only training jobs request one from a cluster.
    """
    torch.set_num_threads(threads)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    keep_pages()
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        if insist:
            visible = os.environ.get("CUDA_VISIBLE_DEVICES", "not set")
            raise RankfallError(
                f"compute.device: {name!r}, but there is no GPU here (CUDA_VISIBLE_DEVICES: {visible}); "
                "on a cluster, training jobs request `gpu: 1`: see what the profile makes of that in `set-resources: train`"
            )
        name = "cpu"
    return torch.device(name)


def waits(device: torch.device) -> bool:
    """Return whether reading a tensor waits for all queued work of the device, as on a GPU, where no training step may read one."""
    return device.type != "cpu"


def to_device(values: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copy values to the device without waiting."""
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values.to(device)


def keep_pages() -> None:
    """Ask glibc to keep freed memory.

    Each step frees and allocates the same blocks. New pages would cost 5 to 10% of its time, or a third with blocks of tens of megabytes.
    """
    library = _glibc()
    if library is not None:
        library.mallopt(M_MMAP_THRESHOLD, 1 << 30)
        library.mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)
        library.mallopt(M_TOP_PAD, 1 << 24)


@contextmanager
def separate_large_blocks() -> Iterator[None]:
    """Release kept memory. Within the context, large blocks come from the system and return to it one by one.

    This is for work that happens once, with other block sizes than a step. In the gaps between the blocks of steps, such blocks would fit
    only by luck, and peak memory would vary.
    """
    library = _glibc()
    if library is None:
        yield
        return
    library.malloc_trim(0)
    library.mallopt(M_MMAP_THRESHOLD, 1 << 24)
    try:
        yield
    finally:
        keep_pages()


def _glibc() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(None)
        return library if library.mallopt and library.malloc_trim else None
    except (OSError, AttributeError):  # another C library
        return None


@contextmanager
def matrix_products(precision: str, device: torch.device) -> Iterator[None]:
    """Compute matrix products in this format within the context: TF32 has 10 bits of fraction, bfloat16 has 7.

    Weights, gradients, the optimiser and sums over many values stay in float32. `benchmarks/gpu.sh` measures the error of gradients.
    """
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
