"""Named random streams: every draw depends on a seed and a name only.

A random stream is Philox, a counter-based generator, keyed by a hash of (seed, names). So what a cell draws does not depend on which
cells share its stack, on the order of construction, or on where a run was resumed; and two cells of one seed draw the same
initial values, data order and dropout masks wherever their names agree, which pairs them for comparison.
"""

from functools import lru_cache
from hashlib import blake2b

import numpy as np


@lru_cache(maxsize=2**14)  # a name may hold a step, and steps never end
def words(*names: str | int) -> tuple[int, int]:
    """Two 64-bit words from the hash of the seed and the names."""
    digest = blake2b("\x1f".join(map(str, names)).encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """The generator of one seed for one purpose, from its beginning."""
    return np.random.Generator(np.random.Philox(key=np.array(words(seed, *names), dtype=np.uint64)))
