"""Memory for activations on large pages. A product reads hundreds of rows that are on different small pages, and the TLB of a processor
holds only about seventy."""

import mmap
from contextlib import suppress

import numpy as np

LARGE = 2**21  # bytes of a large page of Linux (madvise), on x86 and ARM


def memory(count: int) -> np.ndarray:
    """Return zeros (count,) that begin on a large page, or on small pages if the system has no large ones."""
    size = -(-4 * count // LARGE) * LARGE + LARGE
    try:
        held = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{size} bytes for activations") from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            held.madvise(mmap.MADV_HUGEPAGE)
    numbers = np.frombuffer(held, np.float32)
    first = -numbers.ctypes.data % LARGE // 4
    return numbers[first : first + count]
