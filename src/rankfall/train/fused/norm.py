"""Layer norm over features, forward and backward, in passes over so few columns that they stay in the nearest cache."""

import numpy as np

from rankfall.train.fused.arithmetic import f32
from rankfall.train.fused.compiled import elementwise

CHUNK = 64  # columns of a pass


@elementwise
def layer_norm(u, w, at, eps, white, inverse, y):  # type: ignore[no-untyped-def]
    """y (D, R) = white * gain + bias, white = (u - mean) * inverse, inverse (R,) = 1 / sqrt(var + eps); gain and bias begin at w[at]."""
    width, row = u.shape
    mean, square = np.empty(CHUNK, np.float32), np.empty(CHUNK, np.float32)
    for first in range(0, row, CHUNK):
        count = min(CHUNK, row - first)
        mean[:] = 0
        square[:] = 0
        for d in range(width):
            for r in range(count):
                mean[r] += u[d, first + r]
        for r in range(count):
            mean[r] /= f32(width)
        for d in range(width):
            for r in range(count):
                white[d, first + r] = u[d, first + r] - mean[r]
                square[r] += white[d, first + r] * white[d, first + r]
        for r in range(count):
            square[r] = f32(1) / np.sqrt(square[r] / f32(width) + eps)
            inverse[first + r] = square[r]
        for d in range(width):
            gain, bias = w[at[0] + d], w[at[1] + d]
            for r in range(count):
                z = white[d, first + r] * square[r]
                white[d, first + r] = z
                y[d, first + r] = z * gain + bias


@elementwise
def layer_norm_inputs(white, inverse, w, g, at, dy, du):  # type: ignore[no-untyped-def]
    """du from dy; adds to the gradients of gain and bias."""
    width, row = white.shape
    average, along = np.empty(CHUNK, np.float32), np.empty(CHUNK, np.float32)
    for first in range(0, row, CHUNK):
        count = min(CHUNK, row - first)
        average[:] = 0
        along[:] = 0
        for d in range(width):
            gain, dgain, dbias = w[at[0] + d], f32(0), f32(0)
            for r in range(count):
                slope, z = dy[d, first + r], white[d, first + r]
                dgain += slope * z
                dbias += slope
                average[r] += slope * gain
                along[r] += slope * gain * z
            g[at[0] + d] += dgain
            g[at[1] + d] += dbias
        for r in range(count):
            average[r] /= f32(width)
            along[r] /= f32(width)
        for d in range(width):
            gain = w[at[0] + d]
            for r in range(count):
                z = white[d, first + r]
                du[d, first + r] = inverse[first + r] * (dy[d, first + r] * gain - average[r] - z * along[r])
