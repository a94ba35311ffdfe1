"""Multi-head softmax attention, forward and backward. Scores lie as (heads, keys, queries, sequences), so that a softmax runs across no
vector. Equations as in `nets/attentions/multihead.py`."""

import numpy as np

from rankfall.train.fused.arithmetic import exponential, f32
from rankfall.train.fused.compiled import elementwise, inlined
from rankfall.train.fused.products import linear, linear_inputs, linear_inputs_add, linear_weights, multiply, start
from rankfall.train.fused.rotation import rotate
from rankfall.train.fused.tile import LANES, LANEWISE


@elementwise
def softmax(scores, added, use, factor, weights):  # type: ignore[no-untyped-def]
    """weights = softmax over keys of factor * scores + added, all (H, keys, queries, B) but added (H, keys, queries): biases, and -inf
    where masked; without `use` there are none."""
    heads, tokens, padded = scores.shape[0], scores.shape[1], scores.shape[3]
    row = tokens * padded
    most, total = np.empty(row, np.float32), np.empty(row, np.float32)
    for h in range(heads):
        most[:] = -np.inf
        total[:] = 0
        for j in range(tokens):
            here, made = scores[h, j].reshape(row), weights[h, j].reshape(row)
            if use:
                for i in range(tokens):
                    add = added[h, j, i]
                    for b in range(padded):
                        made[i * padded + b] = factor * here[i * padded + b] + add
                for r in range(row):
                    most[r] = made[r] if made[r] > most[r] else most[r]
            else:
                for r in range(row):
                    s = factor * here[r]
                    made[r] = s
                    most[r] = s if s > most[r] else most[r]
        for j in range(tokens):
            made = weights[h, j].reshape(row)
            for r in range(row):
                e = exponential(made[r] - most[r])
                made[r] = e
                total[r] += e
        for r in range(row):
            total[r] = f32(1) / total[r]
        for j in range(tokens):
            made = weights[h, j].reshape(row)
            for r in range(row):
                made[r] *= total[r]


@elementwise
def softmax_inputs(weights, dweights, factor, use, dscores, dadded):  # type: ignore[no-untyped-def]
    """The gradient of the scores from that of the weights; `dadded` (H, keys, queries) is that of what was added."""
    heads, tokens, padded = weights.shape[0], weights.shape[1], weights.shape[3]
    row = tokens * padded
    inner = np.empty(row, np.float32)
    for h in range(heads):
        inner[:] = 0
        for j in range(tokens):
            p, d = weights[h, j].reshape(row), dweights[h, j].reshape(row)
            for r in range(row):
                inner[r] += p[r] * d[r]
        for j in range(tokens):
            p, d, ds = weights[h, j].reshape(row), dweights[h, j].reshape(row), dscores[h, j].reshape(row)
            if use:
                for i in range(tokens):
                    total = f32(0)
                    for b in range(i * padded, (i + 1) * padded):
                        total += p[b] * (d[b] - inner[b])
                    dadded[h, j, i] += total
            for r in range(row):
                ds[r] = factor * (p[r] * (d[r] - inner[r]))


@inlined
def attend(w, at, x, turns, turned, added, use, q, k, v, scores, weights):  # type: ignore[no-untyped-def]
    """Queries, keys and values (H d, R) of x (D, R), and attention weights. `at`: where query, key, value and output maps begin; with
    `turned` queries and keys are rotated by turns (2, d, T)."""
    heads, tokens, padded = weights.shape[0], weights.shape[1], weights.shape[3]
    row, square, there = x.shape[1], tokens * tokens * padded, tokens * padded
    size = q.shape[0] // heads
    linear(w, at[0:2], x, q)
    linear(w, at[2:4], x, k)
    linear(w, at[4:6], x, v)
    if turned:
        rotate(q, turns[0], heads, False)
        rotate(k, turns[1], heads, False)
    for h in range(heads):
        for b in range(0, padded, LANES):
            first, s = 4 * (h * size * row + b), start(scores) + 4 * (h * square + b)
            a, c = start(k) + first, start(q) + first
            multiply(LANEWISE, a, padded, row, c, row, padded, s, there, padded, tokens, tokens, size, 0)
    softmax(scores, added, use, f32(1 / np.sqrt(size)), weights)


@inlined
def mix(w, at, weights, v, contexts, y):  # type: ignore[no-untyped-def]
    """Contexts (H d, R) of each head, and the attention's output y (D, R)."""
    heads, tokens, padded = weights.shape[0], weights.shape[1], weights.shape[3]
    row, square, there = v.shape[1], tokens * tokens * padded, tokens * padded
    size = v.shape[0] // heads
    for h in range(heads):
        for b in range(0, padded, LANES):
            first, p = 4 * (h * size * row + b), start(weights) + 4 * (h * square + b)
            a, c = start(v) + first, start(contexts) + first
            multiply(LANEWISE, a, row, padded, p, there, padded, c, row, padded, size, tokens, tokens, 0)
    linear(w, at[6:8], contexts, y)


@inlined
def mix_inputs(w, g, at, dy, weights, v, contexts, dcontexts, dweights, dv):  # type: ignore[no-untyped-def]
    """From the gradient of the attention's output to those of its weights and values."""
    heads, tokens, padded = weights.shape[0], weights.shape[1], weights.shape[3]
    row, square, there = v.shape[1], tokens * tokens * padded, tokens * padded
    size = v.shape[0] // heads
    linear_weights(contexts, dy, g, at[6:8])
    linear_inputs(w, at[6:8], dy, dcontexts)
    for h in range(heads):
        for b in range(0, padded, LANES):
            first, second = 4 * (h * size * row + b), 4 * (h * square + b)
            dc, value, p = start(dcontexts) + first, start(v) + first, start(weights) + second
            dp, back = start(dweights) + second, start(dv) + first
            multiply(LANEWISE, value, padded, row, dc, row, padded, dp, there, padded, tokens, tokens, size, 0)
            multiply(LANEWISE, dc, row, padded, p, padded, there, back, row, padded, size, tokens, tokens, 0)


@inlined
def attend_inputs(w, g, at, x, turns, turned, q, k, dscores, dv, dq, dk, dx):  # type: ignore[no-untyped-def]
    """From the gradients of scores and values to that of x, which is added to dx."""
    heads, tokens, padded = dscores.shape[0], dscores.shape[1], dscores.shape[3]
    row, square, there = x.shape[1], tokens * tokens * padded, tokens * padded
    size = q.shape[0] // heads
    for h in range(heads):
        for b in range(0, padded, LANES):
            first, s = 4 * (h * size * row + b), start(dscores) + 4 * (h * square + b)
            query, key, dquery, dkey = start(q) + first, start(k) + first, start(dq) + first, start(dk) + first
            multiply(LANEWISE, key, row, padded, s, there, padded, dquery, row, padded, size, tokens, tokens, 0)
            multiply(LANEWISE, query, row, padded, s, padded, there, dkey, row, padded, size, tokens, tokens, 0)
    if turned:
        rotate(dq, turns[0], heads, True)
        rotate(dk, turns[1], heads, True)
    linear_weights(x, dq, g, at[0:2])
    linear_weights(x, dk, g, at[2:4])
    linear_weights(x, dv, g, at[4:6])
    linear_inputs_add(w, at[0:2], dq, dx)
    linear_inputs_add(w, at[2:4], dk, dx)
    linear_inputs_add(w, at[4:6], dv, dx)
