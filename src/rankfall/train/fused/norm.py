"""Layer norm over features, forward and backward: passes along whole rows, so that each is one loop over vectors."""

import numpy as np

from rankfall.train.fused.arithmetic import f32
from rankfall.train.fused.compiled import compiled, elementwise
from rankfall.train.fused.products import sum_rows


@elementwise
def sum_features(u, total):  # type: ignore[no-untyped-def]
    """total (R,) = sum over features of u (D, R); four at once, since each pass writes what it has."""
    width, row = u.shape
    whole = width - width % 4
    total[:] = 0
    for d in range(0, whole, 4):
        for r in range(row):
            total[r] += (u[d, r] + u[d + 1, r]) + (u[d + 2, r] + u[d + 3, r])
    for d in range(whole, width):
        for r in range(row):
            total[r] += u[d, r]


@elementwise
def sum_squares(u, mean, total):  # type: ignore[no-untyped-def]
    """total (R,) = sum over features of (u - mean)^2"""
    width, row = u.shape
    whole = width - width % 4
    total[:] = 0
    for d in range(0, whole, 4):
        for r in range(row):
            z0, z1, z2, z3 = u[d, r] - mean[r], u[d + 1, r] - mean[r], u[d + 2, r] - mean[r], u[d + 3, r] - mean[r]
            total[r] += (z0 * z0 + z1 * z1) + (z2 * z2 + z3 * z3)
    for d in range(whole, width):
        for r in range(row):
            total[r] += (u[d, r] - mean[r]) * (u[d, r] - mean[r])


@elementwise
def finish(u, mean, inverse, gain, bias, white, y):  # type: ignore[no-untyped-def]
    for r in range(u.shape[0]):
        z = (u[r] - mean[r]) * inverse[r]
        white[r] = z
        y[r] = z * gain + bias


@elementwise
def layer_norm(u, w, at, eps, white, inverse, y):  # type: ignore[no-untyped-def]
    """y (D, R) = white * gain + bias, white = (u - mean) * inverse, inverse (R,) = 1 / sqrt(var + eps); gain and bias begin at w[at]."""
    width, row = u.shape
    mean, square = np.empty(row, np.float32), np.empty(row, np.float32)
    sum_features(u, mean)
    for r in range(row):
        mean[r] *= f32(1) / f32(width)
    sum_squares(u, mean, square)
    for r in range(row):
        inverse[r] = f32(1) / np.sqrt(square[r] / f32(width) + eps)
    for d in range(width):
        finish(u[d], mean, inverse, w[at[0] + d], w[at[1] + d], white[d], y[d])


@elementwise
def gather(dy, white, gain, average, along):  # type: ignore[no-untyped-def]
    """Adds to what the gradient has in common with a constant and with `white`; the sum of the latter is the gradient of the gain."""
    dgain = f32(0)
    for r in range(dy.shape[0]):
        slope = dy[r]
        product = slope * white[r]
        dgain += product
        average[r] += gain * slope
        along[r] += gain * product
    return dgain


@elementwise
def project(dy, white, inverse, gain, average, along, du):  # type: ignore[no-untyped-def]
    for r in range(dy.shape[0]):
        du[r] = inverse[r] * (dy[r] * gain - average[r] - white[r] * along[r])


@compiled  # and not elementwise: sums of pairs would be reordered
def layer_norm_inputs(white, inverse, w, g, at, dy, du, pairs):  # type: ignore[no-untyped-def]
    """du from dy; adds to the gradients of gain and bias. `pairs`: as of `sum_rows`."""
    width, row = white.shape
    average, along = np.zeros(row, np.float32), np.zeros(row, np.float32)
    sum_rows(dy, g, at[1], pairs)
    for d in range(width):
        g[at[0] + d] += gather(dy[d], white[d], w[at[0] + d], average, along)
    for r in range(row):
        average[r] *= f32(1) / f32(width)
        along[r] *= f32(1) / f32(width)
    for d in range(width):
        project(dy[d], white[d], inverse, w[at[0] + d], average, along, du[d])
