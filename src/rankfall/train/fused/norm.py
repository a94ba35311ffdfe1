"""Layer norm over features, forward and backward: passes along whole rows, so that each is one loop over vectors."""

import numpy as np

from rankfall.train.fused.arithmetic import f32
from rankfall.train.fused.compiled import elementwise


@elementwise
def add_to(total, x):  # type: ignore[no-untyped-def]
    for r in range(x.shape[0]):
        total[r] += x[r]


@elementwise
def centre(u, mean, white, square):  # type: ignore[no-untyped-def]
    """white = u - mean, and its square is added to `square`."""
    for r in range(u.shape[0]):
        z = u[r] - mean[r]
        white[r] = z
        square[r] += z * z


@elementwise
def finish(white, inverse, gain, bias, y):  # type: ignore[no-untyped-def]
    for r in range(white.shape[0]):
        z = white[r] * inverse[r]
        white[r] = z
        y[r] = z * gain + bias


@elementwise
def layer_norm(u, w, at, eps, white, inverse, y):  # type: ignore[no-untyped-def]
    """y (D, R) = white * gain + bias, white = (u - mean) * inverse, inverse (R,) = 1 / sqrt(var + eps); gain and bias begin at w[at]."""
    width, row = u.shape
    mean, square = np.zeros(row, np.float32), np.zeros(row, np.float32)
    for d in range(width):
        add_to(mean, u[d])
    for r in range(row):
        mean[r] *= f32(1) / f32(width)
    for d in range(width):
        centre(u[d], mean, white[d], square)
    for r in range(row):
        inverse[r] = f32(1) / np.sqrt(square[r] / f32(width) + eps)
    for d in range(width):
        finish(white[d], inverse, w[at[0] + d], w[at[1] + d], y[d])


@elementwise
def gather(dy, white, gain, average, along):  # type: ignore[no-untyped-def]
    """Adds to what the gradient has in common with a constant and with `white`; its sums are those of the gain and the bias."""
    dgain, dbias = f32(0), f32(0)
    for r in range(dy.shape[0]):
        slope = dy[r]
        product = slope * white[r]
        dgain += product
        dbias += slope
        average[r] += gain * slope
        along[r] += gain * product
    return dgain, dbias


@elementwise
def project(dy, white, inverse, gain, average, along, du):  # type: ignore[no-untyped-def]
    for r in range(dy.shape[0]):
        du[r] = inverse[r] * (dy[r] * gain - average[r] - white[r] * along[r])


@elementwise
def layer_norm_inputs(white, inverse, w, g, at, dy, du):  # type: ignore[no-untyped-def]
    """du from dy; adds to the gradients of gain and bias."""
    width, row = white.shape
    average, along = np.zeros(row, np.float32), np.zeros(row, np.float32)
    for d in range(width):
        dgain, dbias = gather(dy[d], white[d], w[at[0] + d], average, along)
        g[at[0] + d] += dgain
        g[at[1] + d] += dbias
    for r in range(row):
        average[r] *= f32(1) / f32(width)
        along[r] *= f32(1) / f32(width)
    for d in range(width):
        project(dy[d], white[d], inverse, w[at[0] + d], average, along, du[d])
