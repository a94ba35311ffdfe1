"""One member's step down its gradient: norm, divergence, clip and optimiser, as `train/members.py` and `train/optimizers/` have them.

Which weights are neighbours in a loop depends on the rows in use, and these are not the same after a restart as before it: so no operation
on a weight is reordered, in whole vectors or in the last numbers of a span.
"""

import numpy as np

from rankfall.train.fused.arithmetic import f32
from rankfall.train.fused.compiled import compiled, elementwise, exact
from rankfall.train.fused.form import ADAM, ADAMW, SGD


@elementwise
def square_sum(g):  # type: ignore[no-untyped-def]
    total = f32(0)
    for i in range(g.shape[0]):
        total += g[i] * g[i]
    return total


@compiled
def square_of(g, used, first, width):  # type: ignore[no-untyped-def]
    """Of a gradient (P,) in whose middle a table begins at `first`, used rows alone: of each row by itself, so that it does not matter
    which rows of zeros are among them."""
    if not used.shape[0]:
        return square_sum(g)
    last = first + used.shape[0] * width
    total = np.float64(square_sum(g[:first])) + np.float64(square_sum(g[last:]))
    for symbol in range(used.shape[0]):
        if used[symbol]:
            total += square_sum(g[first + symbol * width : first + (symbol + 1) * width])
    return f32(total)


@exact
def shrink(w, factor):  # type: ignore[no-untyped-def]
    for i in range(w.shape[0]):
        w[i] *= factor


@exact
def adam(w, g, mean, square, clipped, lr, decay, fresh1, beta2, fresh2, eps, root, bias):  # type: ignore[no-untyped-def]
    """The gradient is `clipped` times g; `fresh1`, `fresh2`: 1 - beta1, 1 - beta2; `root`: sqrt(1 - beta2^t); `bias`: 1 - beta1^t; decay
    enters through the gradient. All is read before anything is written, which was measured to be faster."""
    for i in range(w.shape[0]):
        slope = clipped * g[i] + decay * w[i]
        m = mean[i] + fresh1 * (slope - mean[i])
        s = beta2 * square[i] + fresh2 * slope * slope
        moved = w[i] - lr / bias * (m / (np.sqrt(s) / root + eps))
        mean[i], square[i], w[i] = m, s, moved


@exact
def sgd(w, g, velocity, clipped, lr, decay, momentum):  # type: ignore[no-untyped-def]
    for i in range(w.shape[0]):
        velocity[i] = momentum * velocity[i] + (clipped * g[i] + decay * w[i])
        w[i] -= lr * velocity[i]


@compiled
def descend(kind, w, g, first, second, spans, lr, decay, clip, square, rates, t):  # type: ignore[no-untyped-def]
    """Changes a member's weights w (P,) and slots where `spans` say; `rates`: beta1, beta2, eps of Adam, or momentum; `square`: of the
    gradient's norm."""
    clipped = f32(1)
    if clip < np.inf:
        clipped = min(clipped, clip / (np.sqrt(square) + f32(1e-6)))
    if kind == ADAMW and decay > 0:
        shrink(w, f32(1) - lr * decay)  # also where there is no gradient
    pull = decay if kind == ADAM else f32(0)
    root, bias = f32(np.sqrt(1 - rates[1] ** t)), f32(1 - rates[0] ** t)
    fresh1, beta2, fresh2, eps = f32(1 - rates[0]), f32(rates[1]), f32(1 - rates[1]), f32(rates[2])
    for n in range(spans.shape[0]):
        a, z = spans[n]
        if kind == SGD:
            sgd(w[a:z], g[a:z], first[a:z], clipped, lr, decay, f32(rates[0]))
        else:
            adam(w[a:z], g[a:z], first[a:z], second[a:z], clipped, lr, pull, fresh1, beta2, fresh2, eps, root, bias)
