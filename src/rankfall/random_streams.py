"""Named random streams: every draw depends on a seed and a name only.

A random stream is Philox, a counter-based generator, keyed by a hash of (seed, names). The draws of a cell therefore do not depend on the
other cells of its stack, on the order of construction, or on where a run was resumed. Two cells with the same seed draw the same
initial values, data order and dropout masks wherever their names agree, which pairs them for comparison.
"""

from functools import lru_cache
from hashlib import blake2b

import numpy as np


@lru_cache(maxsize=2**14)  # bounded, because names may contain a step
def words(*names: str | int) -> tuple[int, int]:
    """Return two 64-bit words from the hash of the names, the first of which is the seed."""
    digest = blake2b("\x1f".join(map(str, names)).encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return the generator of a seed and names, at the beginning of its stream."""
    return np.random.Generator(np.random.Philox(key=np.array(words(seed, *names), dtype=np.uint64)))
