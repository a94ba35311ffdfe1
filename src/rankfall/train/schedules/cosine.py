"""A decrease from one to `floor` along half a cosine, after a linear warm-up over the first `warmup` epochs."""

import math


def cosine(epoch: int, epochs: int, *, warmup: int = 0, floor: float = 0.0) -> float:
    if epoch < warmup:
        return (epoch + 1) / (warmup + 1)
    done = (epoch - warmup) / max(1, epochs - warmup)
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * done))
