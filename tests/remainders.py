"""What is left of exact zeros in the first step of one member."""

from dataclasses import replace

from rankfall.design import Architecture, Training
from rankfall.nets.network import Shape
from rankfall.train.machine.engine import Machined
from rankfall.train.machine.exact_zeros import Remainder, by_autograd, find_remainder, initial, to_double
from rankfall.train.objectives._base import Samples


def remainder(a: Architecture, shape: Shape, t: Training, batch: Samples) -> Remainder | None:
    machine, plain, double = (
        initial(a, shape, replace(t, dtype=dtype), batch) for dtype in ("float32", "float32", "float64")
    )
    double.weights.copy_(plain.weights)
    results = (Machined(machine, a, shape, t).passes(machine, batch), machine.grads), by_autograd(plain, t, batch, 0)
    return find_remainder(plain, double, t, batch, *results, by_autograd(double, t, to_double(batch), 0))
