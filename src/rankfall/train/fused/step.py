"""The step of each member, one after another: all that it makes lies in one room, which stays in the processor's cache."""

import numpy as np

from rankfall.train.fused.arithmetic import f32
from rankfall.train.fused.asked import answer
from rankfall.train.fused.blocks import block, block_inputs
from rankfall.train.fused.compiled import compiled, entry, inlined
from rankfall.train.fused.descent import descend, square_of
from rankfall.train.fused.ends import embed, embed_inputs, read_out, read_out_inputs
from rankfall.train.fused.form import CLASSES, MASKED, NO_MLP, SCORES, TABLE, VALUES
from rankfall.train.fused.losses import LOSS, classes, values
from rankfall.train.fused.masks import draw
from rankfall.train.fused.rows import clear, mark, spans_of

RUNNING, STOPPED, DIVERGED = 0, 1, 2  # as in train/members.py


@inlined
def draw_all(key, sites, step, form, room, work):  # type: ignore[no-untyped-def]
    """All masks of a step. `sites` (L + 1, 3): of a layer its weights, attention and MLP; the last row's first two are of the ends."""
    args = (step, form.threshold, form.sequences, form.tokens)
    draw(key[0], key[1], sites[form.depth, 0], *args, 1, work, room.bits_in)
    draw(key[0], key[1], sites[form.depth, 1], *args, 1, work, room.bits_out)
    for layer in range(form.depth):
        draw(key[0], key[1], sites[layer, 0], *args, form.heads, work, room.bits_weights[layer])
        draw(key[0], key[1], sites[layer, 1], *args, 1, work, room.bits_attention[layer])
        if form.activation != NO_MLP:
            draw(key[0], key[1], sites[layer, 2], *args, 1, work, room.bits_mlp[layer])


@compiled
def add_scores(w, first, places, given, added):  # type: ignore[no-untyped-def]
    """added (H, keys, queries) = given + the entry places[h, key, query] of the table at w[first], if there is one."""
    for h in range(added.shape[0]):
        for j in range(added.shape[1]):
            for i in range(added.shape[2]):
                added[h, j, i] = given[h, j, i]
                if first >= 0:
                    added[h, j, i] += w[first + places[h, j, i]]


@compiled
def add_scores_inputs(g, first, places, dadded):  # type: ignore[no-untyped-def]
    for h in range(dadded.shape[0]):
        for j in range(dadded.shape[1]):
            for i in range(dadded.shape[2]):
                g[first + places[h, j, i]] += dadded[h, j, i]


@inlined
def outcome(w, g, ends, form, classes_wanted, values_wanted, room, work, found):  # type: ignore[no-untyped-def]
    """From the last state to the loss over all tokens, and, where a step is taken, back."""
    read_out(w, ends, form, room)
    if form.loss == CLASSES:
        classes(room.outputs, classes_wanted, form.constant, work.doutputs, found)
    else:
        values(room.outputs, values_wanted, work.doutputs, found)
    if not form.learned:
        return
    read_out_inputs(w, g, ends, form, room, work)


@inlined
def gradient(w, g, at, ends, form, index, vectors, classes_wanted, values_wanted, asked, parts, found, room, work):  # type: ignore[no-untyped-def]
    """What is found of one member's batch, and, where a step is taken, the gradient of its loss, added to g (P,). `asked` (B, M): the only
    places that are read out, if not all are; `parts`: what is fixed (`places` and the like)."""
    fixed, given, places, turns = parts
    if form.added:
        add_scores(w, ends[SCORES], places, given, work.added)
        work.dadded[:] = 0
    embed(w, ends, form, index, vectors, fixed, room, work)
    for layer in range(form.depth):
        block(w, at[layer], layer, form, turns, room, work)
    if form.loss == MASKED:
        answer(w, g, ends, form, asked, classes_wanted, room, work, found)
    else:
        outcome(w, g, ends, form, classes_wanted, values_wanted, room, work, found)
    if not form.learned:
        return
    for back in range(form.depth):
        layer = form.depth - 1 - back
        block_inputs(w, g, at[layer], layer, form, turns, room, work)
    embed_inputs(w, g, ends, form, index, room, work)
    if form.added and ends[SCORES] >= 0:
        add_scores_inputs(g, ends[SCORES], places, work.dadded)


@entry
def step_members(  # type: ignore[no-untyped-def]
    start,
    stop,
    weights,
    grads,
    slots,
    at,
    ends,
    form,
    inputs,
    targets,
    parts,
    keys,
    sites,
    step,
    own,
    optimizer,
    fate,
    used,
    found,
    room,
    work,
):
    """Members start .. stop - 1. `inputs` and `targets`: as integers and as numbers, of which one each is used; with them the places that
    are asked for; `own`: lr, decay and clip of each member; `optimizer`: its kind and its rates; `used` (K, symbols): as `rows.py` has
    it."""
    (index, vectors), (wanted, numbers, asked), (first, second) = inputs, targets, slots
    lr, decay, clip = own
    kind, rates = optimizer
    for m in range(start, stop):
        if form.learned and fate[m] == STOPPED:
            found[m] = np.nan  # it takes no part in any epoch after the one that ended it
            continue
        i, j, n = m if form.symbols else 0, 0 if form.loss == VALUES else m, m if form.loss == MASKED else 0
        w, g = weights[m], grads[m]
        if form.drop_scale > 0:
            draw_all(keys[m], sites, step, form, room, work)
        x, y = vectors[0 if form.symbols else m], numbers[m if form.loss == VALUES else 0]
        spans = work.spans[:0]
        if form.learned:
            mark(used[m], index[i])
            spans = work.spans[: spans_of(used[m], ends[TABLE], form.width, w.shape[0], work.spans)]
            clear(g, spans)
        gradient(w, g, at, ends, form, index[i], x, wanted[j], y, asked[n], parts, found[m], room, work)
        if not form.learned:
            continue
        square = square_of(g, used[m], ends[TABLE], form.width)
        if fate[m] == RUNNING and not (np.isfinite(f32(found[m, LOSS])) and np.isfinite(square)):
            fate[m] = DIVERGED
        if fate[m] == RUNNING:
            descend(kind, w, g, first[m], second[m], spans, lr[m], decay[m], clip[m], square, rates, step + 1)
