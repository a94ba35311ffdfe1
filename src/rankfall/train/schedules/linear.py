"""A linear decrease to zero, epoch by epoch."""


def linear(epoch: int, epochs: int) -> float:
    return 1 - epoch / epochs
