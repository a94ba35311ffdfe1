"""Losses of a batch with their gradients: equations and metrics as in `train/objectives/classes.py` and `values.py`."""

import numpy as np

from rankfall.train.fused.arithmetic import exponential, f32
from rankfall.train.fused.compiled import compiled

# Columns of what is found for a member.
LOSS, ASKED, RIGHT, RIGHT_CONSTANT, ASKED_CONSTANT, RIGHT_INFORMATIVE, ASKED_INFORMATIVE, FOUND = range(8)


@compiled
def classes(outputs, targets, sequences, constant, d, found):  # type: ignore[no-untyped-def]
    """Mean cross entropy of outputs (C, T, B) for targets (B, T), -1 where there is none; d (C, T, B) is its gradient."""
    count, tokens = outputs.shape[0], outputs.shape[1]
    found[:] = 0
    for b in range(sequences):
        for t in range(tokens):
            target = targets[b, t]
            found[ASKED] += target != -1
            found[ASKED_CONSTANT] += constant >= 0 and target == constant
    found[ASKED_INFORMATIVE] = found[ASKED] - found[ASKED_CONSTANT]
    share = f32(1) / f32(found[ASKED])
    total = 0.0
    d[:] = 0
    for b in range(sequences):
        for t in range(tokens):
            target = targets[b, t]
            if target == -1:
                continue
            best, most = 0, outputs[0, t, b]
            for c in range(1, count):
                if outputs[c, t, b] > most:
                    best, most = c, outputs[c, t, b]
            weight = f32(0)
            for c in range(count):
                e = exponential(outputs[c, t, b] - most)
                d[c, t, b] = e
                weight += e
            for c in range(count):
                d[c, t, b] *= share / weight
            d[target, t, b] -= share
            total += np.log(weight) - (outputs[target, t, b] - most)
            found[RIGHT] += best == target
            found[RIGHT_CONSTANT] += best == target and target == constant
    found[RIGHT_INFORMATIVE] = found[RIGHT] - found[RIGHT_CONSTANT]
    found[LOSS] = total / found[ASKED]


@compiled
def values(outputs, targets, sequences, d, found):  # type: ignore[no-untyped-def]
    """Mean over tokens of the squared error of outputs (C, T, B), summed over channels, for targets (B, T, C)."""
    count, tokens = outputs.shape[0], outputs.shape[1]
    found[:] = 0
    found[ASKED] = sequences * tokens
    share, total = f32(1) / f32(sequences * tokens), 0.0
    d[:] = 0
    for b in range(sequences):
        for t in range(tokens):
            for c in range(count):
                off = outputs[c, t, b] - targets[b, t, c]
                total += off * off
                d[c, t, b] = f32(2) * off * share
    found[LOSS] = total / found[ASKED]
