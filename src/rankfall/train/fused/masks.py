"""The masks of dropout, the same bits that `train/dropout.py` draws, and what they do to activations.

There, 16 bits of Philox-4x64-10 decide an element, and the elements of a batch (sequence by sequence) are in order. Here kept[n, g] says
which of the numbers 16 g .. 16 g + 15 of row n of an activation are kept, so that some of its bits are the mask of a vector.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rankfall.train.fused.arithmetic import u64
from rankfall.train.fused.compiled import compiled, elementwise
from rankfall.train.fused.philox import blocks_of_words
from rankfall.train.fused.products import start
from rankfall.train.fused.tile import CONTRACT, LANES, VECTOR, load, spread, spread_over, store

WORD = 16  # bits of a word of a mask, and of Philox for each element
BITS = ir.IntType(WORD)


@intrinsic
def at_least(context, place, threshold):  # type: ignore[no-untyped-def]
    """Which of the 16 numbers of 16 bits at an address are at least the threshold, the first in the lowest bit."""
    many = ir.VectorType(BITS, WORD)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = builder.icmp_unsigned(">=", load(builder, args[0], many), spread_over(builder, args[1], WORD))
        return builder.bitcast(found, BITS)

    return types.uint16(types.int64, types.uint16), generate


@intrinsic
def set_in(context, place, bit):  # type: ignore[no-untyped-def]
    """In which of the 16 words of 16 bits at an address this bit (a word with no other) is set."""
    many = ir.VectorType(BITS, WORD)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = builder.and_(load(builder, args[0], many), spread_over(builder, args[1], WORD))
        return builder.bitcast(builder.icmp_unsigned("!=", found, ir.Constant(many, [0] * WORD)), BITS)

    return types.uint16(types.int64, types.uint16), generate


@compiled
def draw(key0, key1, site, step, threshold, sequences, tokens, heads, work, kept):  # type: ignore[no-untyped-def]
    """Fills kept (heads x size, groups). Elements are counted by sequence, head, token and one of `size`: a feature (of states, which have
    one head) or a key."""
    stream, raw, size = work.stream, work.raw, kept.shape[0] // heads
    blocks, some = -(-sequences * heads * tokens * size // WORD), raw.shape[0] // 4
    for first in range(0, blocks, some):
        here = min(some, blocks - first)
        for block in range(0, here, LANES):
            into = start(raw) + 32 * block
            blocks_of_words(u64(key0), u64(key1), u64(site), u64(step), u64(first + block), into)
        for block in range(here):
            stream[first + block] = at_least(start(raw) + 32 * block, np.uint16(threshold))
    groups, rows = kept.shape[1], work.rows
    for h in range(heads):
        for n in range(0, size, WORD):
            for t in range(tokens):
                for b in range(sequences):
                    place = ((b * heads + h) * tokens + t) * size + n
                    at, shift = place // WORD, np.uint32(place % WORD)  # a token need not begin where a word does
                    two = np.uint32(stream[at]) | (np.uint32(stream[at + 1]) << np.uint32(WORD))
                    rows[t * sequences + b] = np.uint16(two >> shift)
            rows[tokens * sequences :] = rows[tokens * sequences - 1]
            for group in range(groups):
                for bit in range(min(WORD, size - n)):
                    kept[h * size + n + bit, group] = set_in(start(rows) + 2 * WORD * group, np.uint16(1 << bit))


@intrinsic(prefer_literal=True)
def dropped_numbers(context, add, x, word, first, scale, keep, onto, y):  # type: ignore[no-untyped-def]
    """A vector of numbers at address y: those at x, scaled where their bit of the word (from `first` on) is set, else zero; with `add`
    keep times those at `onto` more."""
    adds = bool(add.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, x, word, first, scale, keep, onto, y = args
        bits = builder.trunc(builder.lshr(word, builder.trunc(first, BITS)), ir.IntType(LANES))
        mask = builder.bitcast(bits, ir.VectorType(ir.IntType(1), LANES))
        factor = builder.select(mask, spread(builder, scale), ir.Constant(VECTOR, [0.0] * LANES))
        # A product even where nothing is kept: what is not finite shows, as it does in PyTorch's.
        made = builder.fmul(load(builder, x, VECTOR), factor, flags=CONTRACT)
        if adds:
            kept = builder.fmul(load(builder, onto, VECTOR), spread(builder, keep), flags=CONTRACT)
            made = builder.fadd(kept, made, flags=CONTRACT)
        store(builder, made, y)
        return context.get_dummy_value()

    plain, whole = types.float32, types.int64
    return types.void(add, whole, types.uint16, whole, plain, plain, whole, whole), generate


@compiled
def dropped(x, kept, scale, y):  # type: ignore[no-untyped-def]
    """y = x (N, R) where its bit is set, scaled, else 0."""
    for n in range(x.shape[0]):
        for r in range(0, x.shape[1], LANES):
            place = 4 * (n * x.shape[1] + r)
            into = start(y) + place
            dropped_numbers(0, start(x) + place, kept[n, r // WORD], r % WORD, scale, scale, into, into)


@compiled
def dropped_add(x, kept, scale, keep, onto, y):  # type: ignore[no-untyped-def]
    """y = keep onto + dropped x"""
    for n in range(x.shape[0]):
        for r in range(0, x.shape[1], LANES):
            place = 4 * (n * x.shape[1] + r)
            old, into = start(onto) + place, start(y) + place
            dropped_numbers(1, start(x) + place, kept[n, r // WORD], r % WORD, scale, keep, old, into)


@elementwise
def scaled(x, factor, y):  # type: ignore[no-untyped-def]
    for d in range(x.shape[0]):
        for r in range(x.shape[1]):
            y[d, r] = factor * x[d, r]
