"""Losses of a batch with their gradients: equations and metrics as in `train/objectives/classes.py` and `values.py`."""

import numpy as np

from rankfall.train.fused.arithmetic import exponential, f32
from rankfall.train.fused.compiled import compiled, elementwise

# Columns of what is found for a member.
LOSS, ASKED, RIGHT, RIGHT_CONSTANT, ASKED_CONSTANT, RIGHT_INFORMATIVE, ASKED_INFORMATIVE, FOUND = range(8)


@elementwise
def softmax_parts(outputs, most, weight, e):  # type: ignore[no-untyped-def]
    """Of outputs (C, R): their largest and the sum of e = exp(outputs - largest), both (R,)."""
    most[:] = outputs[0]
    for c in range(1, outputs.shape[0]):
        for b in range(outputs.shape[1]):
            most[b] = outputs[c, b] if outputs[c, b] > most[b] else most[b]
    weight[:] = 0
    for c in range(outputs.shape[0]):
        for b in range(outputs.shape[1]):
            e[c, b] = exponential(outputs[c, b] - most[b])
            weight[b] += e[c, b]


@elementwise
def scale_columns(e, factor):  # type: ignore[no-untyped-def]
    """e times the factor of its column; zero where that is zero, whatever e is."""
    for c in range(e.shape[0]):
        for b in range(e.shape[1]):
            e[c, b] = f32(0) if factor[b] == 0 else e[c, b] * factor[b]


@compiled
def classes(outputs, targets, constant, d, found):  # type: ignore[no-untyped-def]
    """Mean cross entropy of outputs (C, R) for targets (B, T), -1 where there is none; d (C, R) is its gradient."""
    sequences, tokens = targets.shape
    found[:] = 0
    for b in range(sequences):
        for t in range(tokens):
            target = targets[b, t]
            found[ASKED] += target != -1
            found[ASKED_CONSTANT] += constant >= 0 and target == constant
    found[ASKED_INFORMATIVE] = found[ASKED] - found[ASKED_CONSTANT]
    share, row = f32(1) / f32(found[ASKED]), outputs.shape[1]
    most, weight, factor = np.empty(row, np.float32), np.empty(row, np.float32), np.zeros(row, np.float32)
    total = 0.0
    softmax_parts(outputs, most, weight, d)
    for t in range(tokens):
        for b in range(sequences):
            target, r = targets[b, t], t * sequences + b
            if target == -1:
                continue
            factor[r] = share / weight[r]
            total += np.log(weight[r]) - (outputs[target, r] - most[r])
            right = outputs[target, r] == most[r]
            for c in range(target):
                right = right and outputs[c, r] < most[r]  # the first of the largest is the answer
            found[RIGHT] += right
            found[RIGHT_CONSTANT] += right and target == constant
    scale_columns(d, factor)
    for t in range(tokens):
        for b in range(sequences):
            if targets[b, t] != -1:
                d[targets[b, t], t * sequences + b] -= share
    found[RIGHT_INFORMATIVE] = found[RIGHT] - found[RIGHT_CONSTANT]
    found[LOSS] = total / found[ASKED]


@compiled
def values(outputs, targets, d, found):  # type: ignore[no-untyped-def]
    """Mean over tokens of the squared error of outputs (C, R), summed over channels, for targets (B, T, C)."""
    sequences, tokens, count = targets.shape
    found[:] = 0
    found[ASKED] = sequences * tokens
    share, total = f32(1) / f32(sequences * tokens), 0.0
    d[:] = 0
    for b in range(sequences):
        for t in range(tokens):
            for c in range(count):
                off = outputs[c, t * sequences + b] - targets[b, t, c]
                total += off * off
                d[c, t * sequences + b] = f32(2) * off * share
    found[LOSS] = total / found[ASKED]
