"""A linear warm-up over the first `warmup` epochs, then a decrease to zero as (1 - done)^power: the schedule of RoBERTa (Liu et al. 2019),
with which URPE's synthetic tasks were trained too.

The rate changes from epoch to epoch. The epochs of an endless task have `train` samples, which can be only a few steps.
"""


def polynomial(epoch: int, epochs: int, *, warmup: int = 0, power: float = 1.0) -> float:
    if epoch < warmup:
        return (epoch + 1) / (warmup + 1)
    return float((1 - (epoch - warmup) / (epochs - warmup)) ** power)
