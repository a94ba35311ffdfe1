"""The machine as a job should use it: device, threads, number formats, memory."""

import ctypes
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from rankfall.plan.config import Compute

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # glibc's malloc.h


def prepare(compute: "Compute") -> torch.device:
    """Sets this process up and returns the device to compute on."""
    torch.set_num_threads(compute.threads)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    keep_pages()
    name = compute.device
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def keep_pages() -> None:
    """Asks glibc to keep freed memory: a step frees and takes the same blocks again, and fresh pages cost 5 to 10% of it."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    mallopt(M_MMAP_THRESHOLD, 1 << 30)
    mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)
    mallopt(M_TOP_PAD, 1 << 24)
