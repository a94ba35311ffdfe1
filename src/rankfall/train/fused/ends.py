"""Embedding and head forward and backward: from symbols or vectors to the first state, and from the last state to outputs."""

import numpy as np

from rankfall.train.fused.arithmetic import add_row, f32, gelu, gelu_inputs
from rankfall.train.fused.attention import fill_up
from rankfall.train.fused.blocks import thinned
from rankfall.train.fused.compiled import compiled, elementwise, inlined
from rankfall.train.fused.form import FIRST, HEAD, NORM_IN, NORM_OUT, PLACED, PLACES, SECOND, TABLE
from rankfall.train.fused.norm import layer_norm, layer_norm_inputs
from rankfall.train.fused.products import linear, linear_inputs, linear_weights, transpose
from rankfall.train.fused.tile import LANES


@compiled
def look_up(w, first, index, x, transposed):  # type: ignore[no-untyped-def]
    """x (D, R): the row of each symbol index (B, T); numbers that only fill a vector up are as the last one. Rows are copied whole,
    to `transposed`, which has room for x^T."""
    (sequences, tokens), (width, row) = index.shape, x.shape
    rows = transposed[: row * width].reshape(row, width)
    for r in range(row):
        t, b = divmod(min(r, tokens * sequences - 1), sequences)
        place = first + index[b, t] * width
        rows[r] = w[place : place + width]
    transpose(rows, x.reshape(-1), row)


@compiled
def look_up_inputs(g, first, index, frozen, dx, transposed):  # type: ignore[no-untyped-def]
    (sequences, tokens), width = index.shape, dx.shape[0]
    transpose(dx, transposed, width)
    for t in range(tokens):
        for b in range(sequences):
            if index[b, t] != frozen:
                place, r = first + index[b, t] * width, t * sequences + b
                add_row(transposed[r * width : (r + 1) * width], g[place : place + width])


@compiled
def turned(vectors, x):  # type: ignore[no-untyped-def]
    """x (C, R) from vectors (B, T, C)"""
    sequences, tokens, count = vectors.shape
    for t in range(tokens):
        for b in range(sequences):
            for c in range(count):
                x[c, t * sequences + b] = vectors[b, t, c]
    fill_up(x, tokens * sequences)


@elementwise
def place(x, w, first, fixed, tokens, sequences, y):  # type: ignore[no-untyped-def]
    """y = x + p, both (D, R); p (T, D) begins at w[first], or is `fixed`."""
    width, row = x.shape
    placed = np.empty(row, np.float32)
    for d in range(width):
        for t in range(tokens):  # in whole vectors, the end of which the next token overwrites
            stop = row if t == tokens - 1 else min(row, t * sequences + -(-sequences // LANES) * LANES)
            placed[t * sequences : stop] = fixed[t, d] if first < 0 else w[first + t * width + d]
        for r in range(row):
            y[d, r] = x[d, r] + placed[r]


@elementwise
def place_inputs(dy, tokens, sequences, g, first):  # type: ignore[no-untyped-def]
    for d in range(dy.shape[0]):
        for t in range(tokens):
            total = f32(0)
            for r in range(t * sequences, (t + 1) * sequences):
                total += dy[d, r]
            g[first + t * dy.shape[0] + d] += total


@inlined
def embed(w, ends, form, index, vectors, fixed, room, work):  # type: ignore[no-untyped-def]
    """From symbols (B, T) or vectors (B, T, C) to states[0]. `fixed` (T, D): what is added to states, if it is not learned; it may be
    empty."""
    if form.symbols:
        look_up(w, ends[TABLE], index, room.source, work.transposed)
    else:
        turned(vectors, room.source)
    x = room.source
    if ends[FIRST] >= 0:
        linear(w, ends[FIRST : FIRST + 2], x, room.first)
        x = room.first
    if ends[SECOND] >= 0:
        gelu(room.first, room.active)
        linear(w, ends[SECOND : SECOND + 2], room.active, room.second)
        x = room.second
    if ends[PLACES] >= 0 or fixed.shape[0] > 0:
        place(x, w, ends[PLACES], fixed, form.tokens, form.sequences, room.placed)
        x = room.placed
    if ends[PLACED] >= 0:
        linear(w, ends[PLACED : PLACED + 2], x, work.one)
        x = work.one
    if ends[NORM_IN] >= 0:
        layer_norm(x, w, ends[NORM_IN : NORM_IN + 2], f32(form.eps), room.white0, room.inverse0, work.two)
        x = work.two
    thinned(x, room.bits_in, 1.0, form, room.states[0])


@inlined
def embed_inputs(w, g, ends, form, index, room, work):  # type: ignore[no-untyped-def]
    """Gradients of the embedding from that of states[0], d[0]."""
    thinned(work.d[0], room.bits_in, 1.0, form, work.one)
    d, free = work.one, work.two
    if ends[NORM_IN] >= 0:
        layer_norm_inputs(room.white0, room.inverse0, w, g, ends[NORM_IN : NORM_IN + 2], d, free, form.pairs)
        d, free = free, d
    if ends[PLACED] >= 0:
        linear_weights(room.placed, d, g, ends[PLACED : PLACED + 2], form.pairs, work.transposed)
        linear_inputs(w, ends[PLACED : PLACED + 2], d, free)
        d, free = free, d
    if ends[PLACES] >= 0:
        place_inputs(d, form.tokens, form.sequences, g, ends[PLACES])
    if ends[SECOND] >= 0:
        linear_weights(room.active, d, g, ends[SECOND : SECOND + 2], form.pairs, work.transposed)
        linear_inputs(w, ends[SECOND : SECOND + 2], d, free)
        gelu_inputs(room.first, free, work.three)
        d = work.three
    if ends[FIRST] >= 0:
        linear_weights(room.source, d, g, ends[FIRST : FIRST + 2], form.pairs, work.transposed)
    if form.symbols:
        if ends[FIRST] >= 0:
            linear_inputs(w, ends[FIRST : FIRST + 2], d, work.dsource)
            d = work.dsource
        look_up_inputs(g, ends[TABLE], index, form.frozen, d, work.transposed)


@inlined
def read_out(w, ends, form, room):  # type: ignore[no-untyped-def]
    """Outputs (C, R) from the last state."""
    x = room.states[form.depth]
    if form.drop_scale > 0:
        thinned(x, room.bits_out, 1.0, form, room.last)
        x = room.last
    if ends[NORM_OUT] >= 0:
        layer_norm(x, w, ends[NORM_OUT : NORM_OUT + 2], f32(form.eps), room.white3, room.inverse3, room.read3)
        x = room.read3
    linear(w, ends[HEAD : HEAD + 2], x, room.outputs)


@inlined
def read_out_inputs(w, g, ends, form, room, work):  # type: ignore[no-untyped-def]
    """From the gradient of the outputs to that of the last state."""
    x = room.last if form.drop_scale > 0 else room.states[form.depth]
    if ends[NORM_OUT] >= 0:
        x = room.read3
    linear_weights(x, work.doutputs, g, ends[HEAD : HEAD + 2], form.pairs, work.transposed)
    linear_inputs(w, ends[HEAD : HEAD + 2], work.doutputs, work.one)
    d = work.one
    if ends[NORM_OUT] >= 0:
        layer_norm_inputs(room.white3, room.inverse3, w, g, ends[NORM_OUT : NORM_OUT + 2], d, work.two, form.pairs)
        d = work.two
    thinned(d, room.bits_out, 1.0, form, work.d[form.depth % 2])
