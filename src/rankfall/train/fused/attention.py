"""Multi-head softmax attention, forward and backward. Scores lie as (heads, keys, R), where R counts queries as it counts tokens, so that
a softmax runs across no vector. Equations as in `nets/attentions/multihead.py`."""

import numpy as np

from rankfall.train.fused.arithmetic import exponential, f32
from rankfall.train.fused.compiled import compiled, elementwise, inlined
from rankfall.train.fused.products import lanewise, linear, linear_inputs, linear_inputs_add, linear_weights, start
from rankfall.train.fused.rotation import rotate
from rankfall.train.fused.tile import LANES


@elementwise
def softmax(scores, added, use, factor, sequences, weights):  # type: ignore[no-untyped-def]
    """weights = softmax over keys of factor * scores + added, all (H, keys, R) but added (H, keys, queries): biases, and -inf where
    masked; without `use` there are none."""
    heads, tokens, row = scores.shape
    most, total = np.empty(row, np.float32), np.empty(row, np.float32)
    for h in range(heads):
        most[:] = -np.inf
        total[:] = 0
        for j in range(tokens):
            here, made = scores[h, j], weights[h, j]
            if use:
                for i in range(tokens):
                    add = added[h, j, i]
                    for r in range(i * sequences, row if i == tokens - 1 else (i + 1) * sequences):
                        made[r] = factor * here[r] + add
                for r in range(row):
                    most[r] = made[r] if made[r] > most[r] else most[r]
            else:
                for r in range(row):
                    s = factor * here[r]
                    made[r] = s
                    most[r] = s if s > most[r] else most[r]
        for j in range(tokens):
            made = weights[h, j]
            for r in range(row):
                e = exponential(made[r] - most[r])
                made[r] = e
                total[r] += e
        for r in range(row):
            total[r] = f32(1) / total[r]
        for j in range(tokens):
            made = weights[h, j]
            for r in range(row):
                made[r] *= total[r]


@elementwise
def add_products(p, d, inner):  # type: ignore[no-untyped-def]
    """inner (R,) += p d"""
    for r in range(inner.shape[0]):
        inner[r] += p[r] * d[r]


@compiled
def inner_of_two(p, d, inner):  # type: ignore[no-untyped-def]
    """inner (R,) = sum over two keys of p d (2, R) of rounded products, the same whichever key is first."""
    for r in range(inner.shape[0]):
        inner[r] = p[0, r] * d[0, r] + p[1, r] * d[1, r]


@elementwise
def sum_slopes(p, d, inner, first, last):  # type: ignore[no-untyped-def]
    """The sum of p (d - inner) over numbers first .. last - 1."""
    total = f32(0)
    for r in range(first, last):
        total += p[r] * (d[r] - inner[r])
    return total


@compiled
def slopes(p, d, inner, factor, ds):  # type: ignore[no-untyped-def]
    """Multiplied in this order everywhere, in the last numbers of a row too."""
    for r in range(p.shape[0]):
        ds[r] = factor * (p[r] * (d[r] - inner[r]))


@compiled  # and not elementwise: numba would let the functions that are called here merge and reorder as well
def softmax_inputs(weights, dweights, factor, use, sequences, dscores, dadded):  # type: ignore[no-untyped-def]
    """The gradient of the scores from that of the weights; `dadded` (H, keys, queries) is that of what was added."""
    heads, tokens, row = weights.shape
    inner = np.empty(row, np.float32)
    for h in range(heads):
        if tokens == 2:
            inner_of_two(weights[h], dweights[h], inner)
        else:
            inner[:] = 0
            for j in range(tokens):
                add_products(weights[h, j], dweights[h, j], inner)
        for j in range(tokens):
            if use:
                for i in range(tokens):
                    dadded[h, j, i] += sum_slopes(
                        weights[h, j], dweights[h, j], inner, i * sequences, (i + 1) * sequences
                    )
            slopes(weights[h, j], dweights[h, j], inner, factor, dscores[h, j])


@compiled
def fill_up(x, used):  # type: ignore[no-untyped-def]
    """Numbers after the first `used` of a row are as the last of them."""
    for d in range(x.shape[0]):
        for r in range(used, x.shape[1]):
            x[d, r] = x[d, used - 1]


@inlined
def attend(w, at, x, turns, turned, added, use, sequences, q, k, v, scores, weights):  # type: ignore[no-untyped-def]
    """Queries, keys and values (H d, R) of x (D, R), and attention weights. `at`: where query, key, value and output maps begin; with
    `turned` queries and keys are rotated by turns (2, d, T)."""
    heads, tokens, row = weights.shape
    size = q.shape[0] // heads
    linear(w, at[0:2], x, q)
    linear(w, at[2:4], x, k)
    linear(w, at[4:6], x, v)
    if turned:
        rotate(q, turns[0], heads, sequences, False)
        rotate(k, turns[1], heads, sequences, False)
    for h in range(heads):
        for b in range(0, sequences, LANES):
            first, s, lanes = 4 * (h * size * row + b), start(scores) + 4 * (h * tokens * row + b), sequences - b
            a, c = start(k) + first, start(q) + first
            lanewise(a, sequences, row, c, row, sequences, s, row, sequences, tokens, tokens, size, lanes)
    softmax(scores, added, use, f32(1 / np.sqrt(size)), sequences, weights)


@inlined
def mix(w, at, weights, v, sequences, contexts, y):  # type: ignore[no-untyped-def]
    """Contexts (H d, R) of each head, and the attention's output y (D, R)."""
    heads, tokens, row = weights.shape
    size = v.shape[0] // heads
    for h in range(heads):
        for b in range(0, sequences, LANES):
            first, p, lanes = 4 * (h * size * row + b), start(weights) + 4 * (h * tokens * row + b), sequences - b
            a, c = start(v) + first, start(contexts) + first
            lanewise(a, row, sequences, p, row, sequences, c, row, sequences, size, tokens, tokens, lanes)
    fill_up(contexts, tokens * sequences)
    linear(w, at[6:8], contexts, y)


@inlined
def mix_inputs(w, g, at, dy, weights, v, contexts, sequences, dweights, work):  # type: ignore[no-untyped-def]
    """From the gradient of the attention's output to those of its weights and values (work.dv)."""
    heads, tokens, row = weights.shape
    size, dcontexts, dv = v.shape[0] // heads, work.dcontexts, work.dv
    linear_weights(contexts, dy, g, at[6:8], sequences if tokens == 2 else 0, work.transposed)
    linear_inputs(w, at[6:8], dy, dcontexts)
    for h in range(heads):
        for b in range(0, sequences, LANES):
            first, second, lanes = 4 * (h * size * row + b), 4 * (h * tokens * row + b), sequences - b
            dc, value, p = start(dcontexts) + first, start(v) + first, start(weights) + second
            dp, back = start(dweights) + second, start(dv) + first
            lanewise(value, sequences, row, dc, row, sequences, dp, row, sequences, tokens, tokens, size, lanes)
            lanewise(dc, row, sequences, p, sequences, row, back, row, sequences, size, tokens, tokens, lanes)


@inlined
def attend_inputs(w, g, at, x, turns, turned, q, k, dscores, sequences, dx, work):  # type: ignore[no-untyped-def]
    """From the gradients of scores and values (work.dv) to that of x, which is added to dx."""
    heads, tokens, row = dscores.shape
    size, pairs, dq, dk, dv = q.shape[0] // heads, sequences if tokens == 2 else 0, work.dq, work.dk, work.dv
    for h in range(heads):
        for b in range(0, sequences, LANES):
            first, s, lanes = 4 * (h * size * row + b), start(dscores) + 4 * (h * tokens * row + b), sequences - b
            query, key, dquery, dkey = start(q) + first, start(k) + first, start(dq) + first, start(dk) + first
            lanewise(key, row, sequences, s, row, sequences, dquery, row, sequences, size, tokens, tokens, lanes)
            lanewise(query, row, sequences, s, sequences, row, dkey, row, sequences, size, tokens, tokens, lanes)
    if turned:
        rotate(dq, turns[0], heads, sequences, True)
        rotate(dk, turns[1], heads, sequences, True)
    linear_weights(x, dq, g, at[0:2], pairs, work.transposed)
    linear_weights(x, dk, g, at[2:4], pairs, work.transposed)
    linear_weights(x, dv, g, at[4:6], pairs, work.transposed)
    linear_inputs_add(w, at[0:2], dq, dx)
    linear_inputs_add(w, at[2:4], dk, dx)
    linear_inputs_add(w, at[4:6], dv, dx)
