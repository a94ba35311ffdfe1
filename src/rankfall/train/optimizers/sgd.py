"""Stochastic gradient descent, optionally with momentum."""

import thousandfold.optimizers


class Sgd(thousandfold.optimizers.SGD):
    def __init__(self, *, momentum: float = 0.0) -> None:
        super().__init__(momentum=momentum)
