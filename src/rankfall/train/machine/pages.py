"""Memory for activations on large pages: a product reads the same place of hundreds of rows, each on a page of its own, and a processor
finds only some seventy small pages at once."""

import mmap
from contextlib import suppress

import numpy as np

LARGE = 2**21  # bytes of a page that Linux lends where it is asked to (madvise), on x86 and ARM alike


def memory(count: int) -> np.ndarray:
    """Zeros (count,) from the beginning of a large page on; on small ones where the system has no others."""
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
