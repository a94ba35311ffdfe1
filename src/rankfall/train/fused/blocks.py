"""A block forward and backward; equations as in `nets/blocks/attention.py`."""

from rankfall.train.fused.arithmetic import f32, gelu, gelu_inputs, relu, relu_inputs
from rankfall.train.fused.attention import attend, attend_inputs, mix, mix_inputs, softmax_inputs
from rankfall.train.fused.compiled import compiled, elementwise, inlined
from rankfall.train.fused.form import GELU, INNER, NO_MLP, NORM1, NORM2, OUTER
from rankfall.train.fused.masks import dropped, dropped_add, scaled
from rankfall.train.fused.norm import layer_norm, layer_norm_inputs
from rankfall.train.fused.products import linear, linear_inputs, linear_inputs_add, linear_weights


@elementwise
def weighted(keep, x, factor, y, out):  # type: ignore[no-untyped-def]
    """out = keep x + factor y"""
    for d in range(x.shape[0]):
        for r in range(x.shape[1]):
            out[d, r] = keep * x[d, r] + factor * y[d, r]


@compiled
def thinned(x, bits, factor, form, out):  # type: ignore[no-untyped-def]
    """out = factor times the states x (D, R) after dropout."""
    if form.drop_scale > 0:
        dropped(x, bits, f32(factor * form.drop_scale), out)
    else:
        scaled(x, f32(factor), out)


@compiled
def joined(x, keep, branch, bits, factor, form, out):  # type: ignore[no-untyped-def]
    """out = keep x + factor times the branch (D, R) after dropout."""
    if form.drop_scale > 0:
        dropped_add(branch, bits, f32(factor * form.drop_scale), f32(keep), x, out)
    else:
        weighted(f32(keep), x, f32(factor), branch, out)


@inlined
def block(w, at, layer, form, turns, room, work):  # type: ignore[no-untyped-def]
    """From states[layer] to states[layer + 1]."""
    x, y, eps = room.states[layer], room.states[layer + 1], f32(form.eps)
    middle = y if form.activation == NO_MLP else room.middle[layer]
    read = x
    if form.normed and form.before:
        read = room.read1[layer]
        layer_norm(x, w, at[NORM1 : NORM1 + 2], eps, room.white1[layer], room.inverse1[layer], read)
    p, shape = room.weights[layer], (form.heads * form.tokens, form.row)
    q, k, v = room.q[layer], room.k[layer], room.v[layer]
    attend(w, at, read, turns, form.turned, work.added, form.added, form.sequences, q, k, v, work.scores, p)
    if form.drop_scale > 0:
        p = room.dropped[layer]
        dropped(room.weights[layer].reshape(shape), room.bits_weights[layer], f32(form.drop_scale), p.reshape(shape))
    mix(w, at, p, v, form.sequences, room.contexts[layer], work.one)
    bits, total = room.bits_attention[layer], work.three if form.normed and not form.before else middle
    joined(x, form.keep, work.one, bits, form.branch, form, total)
    if form.normed and not form.before:
        layer_norm(work.three, w, at[NORM1 : NORM1 + 2], eps, room.white1[layer], room.inverse1[layer], middle)
    if form.activation == NO_MLP:
        return
    read = middle
    if form.normed and form.before:
        read = room.read2[layer]
        layer_norm(middle, w, at[NORM2 : NORM2 + 2], eps, room.white2[layer], room.inverse2[layer], read)
    linear(w, at[INNER : INNER + 2], read, room.h[layer])
    if form.activation == GELU:
        gelu(room.h[layer], room.a[layer])
    else:
        relu(room.h[layer], room.a[layer])
    linear(w, at[OUTER : OUTER + 2], room.a[layer], work.one)
    total = work.three if form.normed and not form.before else y
    joined(middle, form.mlp_keep, work.one, room.bits_mlp[layer], form.mlp_branch, form, total)
    if form.normed and not form.before:
        layer_norm(work.three, w, at[NORM2 : NORM2 + 2], eps, room.white2[layer], room.inverse2[layer], y)


@inlined
def mlp_inputs(w, g, at, layer, form, room, work, dy, dx):  # type: ignore[no-untyped-def]
    """From the gradient of the block's output to that of what stands between attention and MLP."""
    total, gains = dy, at[NORM2 : NORM2 + 2]
    if form.normed and not form.before:
        total = work.three
        layer_norm_inputs(room.white2[layer], room.inverse2[layer], w, g, gains, dy, total, form.pairs)
    thinned(total, room.bits_mlp[layer], form.mlp_branch, form, work.two)
    linear_weights(room.a[layer], work.two, g, at[OUTER : OUTER + 2], form.pairs, work.transposed)
    linear_inputs(w, at[OUTER : OUTER + 2], work.two, work.da)
    if form.activation == GELU:
        gelu_inputs(room.h[layer], work.da, work.dh)
    else:
        relu_inputs(room.h[layer], work.da, work.dh)
    read = room.read2[layer] if form.normed and form.before else room.middle[layer]
    linear_weights(read, work.dh, g, at[INNER : INNER + 2], form.pairs, work.transposed)
    if form.normed and form.before:
        linear_inputs(w, at[INNER : INNER + 2], work.dh, work.two)
        layer_norm_inputs(room.white2[layer], room.inverse2[layer], w, g, gains, work.two, work.three, form.pairs)
        weighted(f32(form.mlp_keep), total, f32(1), work.three, dx)
    else:
        scaled(total, f32(form.mlp_keep), dx)
        linear_inputs_add(w, at[INNER : INNER + 2], work.dh, dx)


@inlined
def block_inputs(w, g, at, layer, form, turns, room, work):  # type: ignore[no-untyped-def]
    """From the gradient d[(layer + 1) % 2] of states[layer + 1] to that of states[layer], d[layer % 2]."""
    dx, total, gains = work.d[layer % 2], work.d[(layer + 1) % 2], at[NORM1 : NORM1 + 2]
    if form.activation != NO_MLP:
        mlp_inputs(w, g, at, layer, form, room, work, total, work.one)
        total = work.one
    if form.normed and not form.before:
        layer_norm_inputs(room.white1[layer], room.inverse1[layer], w, g, gains, total, work.three, form.pairs)
        total = work.three
    thinned(total, room.bits_attention[layer], form.branch, form, work.two)
    p, q, k, v = room.weights[layer], room.q[layer], room.k[layer], room.v[layer]
    seen = room.dropped[layer] if form.drop_scale > 0 else p
    dp = work.dscores
    mix_inputs(w, g, at, work.two, seen, v, room.contexts[layer], form.sequences, dp, work)
    ds = work.scores
    factor = f32(1 / f32(form.head_width) ** f32(0.5))
    if form.drop_scale > 0:
        shape = (form.heads * form.tokens, form.row)
        bits = room.bits_weights[layer]
        dropped(work.dscores.reshape(shape), bits, f32(form.drop_scale), work.scores.reshape(shape))
        dp, ds = work.scores, work.dscores
    softmax_inputs(p, dp, factor, form.added, form.sequences, ds, work.dadded)
    read = room.read1[layer] if form.normed and form.before else room.states[layer]
    if form.normed and form.before:
        work.two[:] = 0
        attend_inputs(w, g, at, read, turns, form.turned, q, k, ds, form.sequences, work.two, work)
        layer_norm_inputs(room.white1[layer], room.inverse1[layer], w, g, gains, work.two, work.three, form.pairs)
        weighted(f32(form.keep), total, f32(1), work.three, dx)
    else:
        scaled(total, f32(form.keep), dx)
        attend_inputs(w, g, at, read, turns, form.turned, q, k, ds, form.sequences, dx, work)
