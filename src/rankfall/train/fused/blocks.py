"""A block forward and backward; equations as in `nets/blocks/attention.py`."""

from rankfall.train.fused.arithmetic import f32, gelu, gelu_inputs, relu, relu_inputs
from rankfall.train.fused.attention import attend, attend_inputs, mix, mix_inputs, softmax_inputs
from rankfall.train.fused.compiled import compiled, elementwise, inlined
from rankfall.train.fused.form import GELU, INNER, NO_MLP, NORM1, NORM2, OUTER
from rankfall.train.fused.masks import dropped, dropped_scores, scaled
from rankfall.train.fused.norm import layer_norm, layer_norm_inputs
from rankfall.train.fused.products import linear, linear_inputs, linear_weights


@elementwise
def copied(x, y):  # type: ignore[no-untyped-def]
    for d in range(x.shape[0]):
        for r in range(x.shape[1]):
            y[d, r] = x[d, r]


@elementwise
def weighted(keep, x, y, out):  # type: ignore[no-untyped-def]
    """out = keep x + y"""
    for d in range(x.shape[0]):
        for r in range(x.shape[1]):
            out[d, r] = keep * x[d, r] + y[d, r]


@compiled
def thinned(x, bits, factor, form, out):  # type: ignore[no-untyped-def]
    """out = factor times the states x (D, R) after dropout."""
    if form.drop_scale > 0:
        shape = (form.width, form.tokens, form.padded)
        dropped(x.reshape(shape), bits, f32(factor * form.drop_scale), out.reshape(shape))
    else:
        scaled(x, f32(factor), out)


@inlined
def block(w, at, layer, form, room, work):  # type: ignore[no-untyped-def]
    """From states[layer] to states[layer + 1]."""
    x, y, eps = room.states[layer], room.states[layer + 1], f32(form.eps)
    middle = y if form.activation == NO_MLP else room.middle[layer]
    read = x
    if form.normed and form.before:
        read = room.read1[layer]
        layer_norm(x, w, at[NORM1 : NORM1 + 2], eps, room.white1[layer], room.inverse1[layer], read)
    p = room.weights[layer]
    attend(w, at, read, work.added, form.added, room.q[layer], room.k[layer], room.v[layer], work.scores, p)
    if form.drop_scale > 0:
        dropped_scores(p, room.bits_weights[layer], f32(form.drop_scale), room.dropped[layer])
        p = room.dropped[layer]
    mix(w, at, p, room.v[layer], room.contexts[layer], work.one)
    thinned(work.one, room.bits_attention[layer], form.branch, form, work.two)
    if form.normed and not form.before:
        weighted(f32(form.keep), x, work.two, work.three)
        layer_norm(work.three, w, at[NORM1 : NORM1 + 2], eps, room.white1[layer], room.inverse1[layer], middle)
    else:
        weighted(f32(form.keep), x, work.two, middle)
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
    thinned(work.one, room.bits_mlp[layer], form.mlp_branch, form, work.two)
    if form.normed and not form.before:
        weighted(f32(form.mlp_keep), middle, work.two, work.three)
        layer_norm(work.three, w, at[NORM2 : NORM2 + 2], eps, room.white2[layer], room.inverse2[layer], y)
    else:
        weighted(f32(form.mlp_keep), middle, work.two, y)


@inlined
def mlp_inputs(w, g, at, layer, form, room, work, dy, dx):  # type: ignore[no-untyped-def]
    """From the gradient of the block's output to that of what stands between attention and MLP."""
    total, gains = dy, at[NORM2 : NORM2 + 2]
    if form.normed and not form.before:
        total = work.one
        layer_norm_inputs(room.white2[layer], room.inverse2[layer], w, g, gains, dy, total)
    thinned(total, room.bits_mlp[layer], form.mlp_branch, form, work.two)
    linear_weights(room.a[layer], work.two, g, at[OUTER : OUTER + 2])
    linear_inputs(w, at[OUTER : OUTER + 2], work.two, work.da)
    if form.activation == GELU:
        gelu_inputs(room.h[layer], work.da, work.dh)
    else:
        relu_inputs(room.h[layer], work.da, work.dh)
    read = room.read2[layer] if form.normed and form.before else room.middle[layer]
    linear_weights(read, work.dh, g, at[INNER : INNER + 2])
    linear_inputs(w, at[INNER : INNER + 2], work.dh, work.two)
    back = work.two
    if form.normed and form.before:
        back = work.three
        layer_norm_inputs(room.white2[layer], room.inverse2[layer], w, g, gains, work.two, back)
    weighted(f32(form.mlp_keep), total, back, dx)


@inlined
def block_inputs(w, g, at, layer, form, room, work):  # type: ignore[no-untyped-def]
    """From the gradient d[(layer + 1) % 2] of states[layer + 1] to that of states[layer], d[layer % 2]."""
    dx, total, gains = work.d[layer % 2], work.d[(layer + 1) % 2], at[NORM1 : NORM1 + 2]
    if form.activation != NO_MLP:
        mlp_inputs(w, g, at, layer, form, room, work, total, dx)
        total, dx = dx, total
    out = dx
    if form.normed and not form.before:
        layer_norm_inputs(room.white1[layer], room.inverse1[layer], w, g, gains, total, work.one)
        total = work.one
    thinned(total, room.bits_attention[layer], form.branch, form, work.two)
    p, q, k, v = room.weights[layer], room.q[layer], room.k[layer], room.v[layer]
    seen = room.dropped[layer] if form.drop_scale > 0 else p
    dp = work.dscores
    mix_inputs(w, g, at, work.two, seen, v, room.contexts[layer], work.dcontexts, dp, work.dv)
    ds = work.scores
    factor = f32(1 / f32(form.head_width) ** f32(0.5))
    if form.drop_scale > 0:
        dropped_scores(work.dscores, room.bits_weights[layer], f32(form.drop_scale), work.scores)
        dp, ds = work.scores, work.dscores
    softmax_inputs(p, dp, factor, form.added, ds, work.dadded)
    read = room.read1[layer] if form.normed and form.before else room.states[layer]
    attend_inputs(w, g, at, read, q, k, ds, work.dv, work.dq, work.dk, work.two)
    back = work.two
    if form.normed and form.before:
        back = work.three
        layer_norm_inputs(room.white1[layer], room.inverse1[layer], w, g, gains, work.two, back)
    weighted(f32(form.keep), total, back, out)
    if form.activation != NO_MLP:
        copied(out, work.d[layer % 2])
