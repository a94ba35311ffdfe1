"""Down to zero in a straight line, epoch by epoch."""


def linear(epoch: int, epochs: int) -> float:
    return 1 - epoch / epochs
