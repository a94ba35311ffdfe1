"""The head where only some places are asked for: it reads their states alone and its loss is taken of their logits alone, a part of the
places at a time. Equations and metrics as in `train/objectives/masked_tokens.py`.

Elsewhere vectors hold places. Here they hold classes: the head's weights lie in that order, a softmax runs along one row of memory, and
for gradients of weights nothing is transposed. Weights and their gradient are copies (D + 1, C'), whose last row is the bias
and whose classes fill whole vectors.
"""

import numpy as np

from rankfall.train.fused.arithmetic import add_row, exponential, f32
from rankfall.train.fused.blocks import thinned
from rankfall.train.fused.compiled import INNER, JIT, compiled, elementwise, inlined
from rankfall.train.fused.form import HEAD, NORM_OUT
from rankfall.train.fused.losses import ASKED, LOSS, RIGHT
from rankfall.train.fused.norm import layer_norm, layer_norm_inputs
from rankfall.train.fused.products import multiply, start
from rankfall.train.fused.tile import LANES, OVER_LANES, WEIGHTS, WEIGHTS_ADD


@compiled
def gather(x, places, step, seen):  # type: ignore[no-untyped-def]
    """seen (D, N): of x (D, R) the states at places (B, M), sequence by sequence; columns that only fill up are as the last."""
    count, of_each = places.size, places.shape[1]
    for d in range(x.shape[0]):
        for n in range(seen.shape[1]):
            b, m = divmod(min(n, count - 1), of_each)
            seen[d, n] = x[d, places[b, m] * step + b]


@compiled
def scatter(dseen, places, step, dx):  # type: ignore[no-untyped-def]
    """dx (D, R), zero where nothing was asked."""
    dx[:] = 0
    for d in range(dx.shape[0]):
        for b in range(places.shape[0]):
            for m in range(places.shape[1]):
                dx[d, places[b, m] * step + b] += dseen[d, b * places.shape[1] + m]


@compiled
def copy_head(w, at, classes, head):  # type: ignore[no-untyped-def]
    """Weights and bias, and zero probability for classes that only fill a vector up."""
    inputs = head.shape[0] - 1
    head[:, classes:] = 0
    head[inputs, classes:] = -np.inf
    for i in range(inputs):
        head[i, :classes] = w[at[0] + i * classes : at[0] + (i + 1) * classes]
    head[inputs, :classes] = w[at[1] : at[1] + classes]


@compiled
def add_head(dhead, classes, g, at):  # type: ignore[no-untyped-def]
    inputs = dhead.shape[0] - 1
    for i in range(inputs):
        add_row(dhead[i], g[at[0] + i * classes : at[0] + (i + 1) * classes])
    add_row(dhead[inputs], g[at[1] : at[1] + classes])


@JIT(**INNER, fastmath={"nnan", "nsz"})
def largest(row):  # type: ignore[no-untyped-def]
    """NaN may be passed over: it shows in the sum of exponentials."""
    most = row[0]
    for c in range(row.shape[0]):
        most = row[c] if row[c] > most else most
    return most


@elementwise
def exponentials(row, most):  # type: ignore[no-untyped-def]
    """e^(x - most) in place, and their sum."""
    total = f32(0)
    for c in range(row.shape[0]):
        e = exponential(row[c] - most)
        row[c] = e
        total += e
    return total


@elementwise
def scale_row(row, factor):  # type: ignore[no-untyped-def]
    for c in range(row.shape[0]):
        row[c] *= factor


@compiled
def cross_entropy(row, wanted, share):  # type: ignore[no-untyped-def]
    """Of logits (C',), which become their gradient times `share`: the loss, and whether the first of the largest is wanted."""
    most = largest(row)
    right, stood = row[wanted] == most, row[wanted]
    for c in range(wanted if right else 0):
        right = right and row[c] < most
    total = exponentials(row, most)
    scale_row(row, share / total)
    row[wanted] -= share
    return np.log(total) - (stood - most), right


@inlined
def grade(seen, wanted, head, logits, dseen, dhead, found):  # type: ignore[no-untyped-def]
    """Mean cross entropy of states seen (D + 1, N), whose last row is 1, for what is wanted (B, M), -1 where nothing is; and the gradients
    of states and head."""
    inputs, row, each, flat = dseen.shape[0], seen.shape[1], logits.shape[1], wanted.reshape(wanted.size)
    found[:] = 0
    for n in range(flat.shape[0]):
        found[ASKED] += flat[n] != -1
    share, total = f32(1) / f32(max(found[ASKED], 1)), 0.0
    dseen[:], dhead[:] = 0, 0
    for first in range(0, flat.shape[0], logits.shape[0]):
        count = min(logits.shape[0], flat.shape[0] - first)
        x, dx = start(seen) + 4 * first, start(dseen) + 4 * first
        h, y, vectors = start(head), start(logits), each // LANES
        multiply(WEIGHTS, x, 1, row, h, each, LANES, y, each, LANES, count, vectors, inputs + 1, 0)
        for n in range(count):
            answer = flat[first + n]
            if answer == -1:
                logits[n] = 0
                continue
            loss, right = cross_entropy(logits[n], answer, share)
            total += loss
            found[RIGHT] += right
        multiply(WEIGHTS_ADD, x, row, 1, y, each, LANES, start(dhead), each, LANES, inputs + 1, vectors, count, 0)
        multiply(OVER_LANES, h, each, LANES, y, LANES, each, dx, row, 1, inputs, count, vectors, 0)
    found[LOSS] = total / max(found[ASKED], 1)


@inlined
def answer(w, g, ends, form, places, wanted, room, work, found):  # type: ignore[no-untyped-def]
    """From the last state to the loss, and back to the gradient of the last state."""
    x = room.states[form.depth]
    if form.drop_scale > 0:
        thinned(x, room.bits_out, 1.0, form, room.last)
        x = room.last
    gather(x, places, form.sequences, room.seen)
    read = room.read3[: form.width]
    if ends[NORM_OUT] >= 0:
        at = ends[NORM_OUT : NORM_OUT + 2]
        layer_norm(room.seen, w, at, f32(form.eps), room.white3, room.inverse3, read)
    else:
        read[:] = room.seen
    room.read3[form.width] = 1
    copy_head(w, ends[HEAD : HEAD + 2], form.size_out, work.head)
    grade(room.read3, wanted, work.head, work.logits, work.dseen, work.dhead, found)
    add_head(work.dhead, form.size_out, g, ends[HEAD : HEAD + 2])
    dseen = work.dseen
    if ends[NORM_OUT] >= 0:
        dseen = room.seen  # which is no longer needed
        layer_norm_inputs(room.white3, room.inverse3, w, g, ends[NORM_OUT : NORM_OUT + 2], work.dseen, dseen, 0)
    scatter(dseen, places, form.sequences, work.one)
    thinned(work.one, room.bits_out, 1.0, form, work.d[form.depth % 2])
