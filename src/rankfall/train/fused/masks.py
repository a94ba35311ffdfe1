"""The masks of dropout, the same bits that `train/dropout.py` draws, and what they do to activations.

There, 16 bits of Philox-4x64-10 decide an element, and the elements of a batch (sequence by sequence) are in order. Here kept[n, g] says
in which of the sequences 16 g .. 16 g + 15 element n is kept, so that some of its bits are the mask of a vector.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rankfall.train.fused.arithmetic import u64
from rankfall.train.fused.compiled import compiled, elementwise
from rankfall.train.fused.products import start
from rankfall.train.fused.tile import CONTRACT, INT, LANES, SHORT, VECTOR, load, shuffled, spread, store

WORD = 16  # bits of a word of a mask, and of Philox for each element
BITS = ir.IntType(WORD)


@intrinsic
def high_word(context, x, y):  # type: ignore[no-untyped-def]
    """The upper half of the product of two 64-bit words."""
    wide = ir.IntType(128)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, wide(64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def at_least(context, place, threshold):  # type: ignore[no-untyped-def]
    """Which of the 16 numbers of 16 bits at an address are at least the threshold, the first in the lowest bit."""
    many = ir.VectorType(BITS, WORD)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        numbers = load(builder, args[0], many)
        one = builder.insert_element(ir.Constant(many, ir.Undefined), args[1], SHORT(0))
        found = builder.icmp_unsigned(">=", numbers, shuffled(builder, one, one, [0] * WORD))
        return builder.bitcast(found, BITS)

    return types.uint16(types.int64, types.uint16), generate


@intrinsic
def turn(context, place, into, stride):  # type: ignore[no-untyped-def]
    """From 16 words of 16 bits at an address to as many of the bits of each place in them, `stride` words apart."""
    many = ir.VectorType(BITS, WORD)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows, at = load(builder, args[0], many), args[1]
        step = builder.mul(args[2], INT(2))
        for bit in range(WORD):
            shifted = builder.shl(rows, ir.Constant(many, [WORD - 1 - bit] * WORD))  # the bit becomes the sign
            store(
                builder, builder.bitcast(builder.icmp_signed("<", shifted, ir.Constant(many, [0] * WORD)), BITS), at, 2
            )
            at = builder.add(at, step)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@compiled
def draw(key0, key1, site, step, threshold, sequences, size, work, kept):  # type: ignore[no-untyped-def]
    """Fills kept (elements, groups) for `size` elements a sequence; sequences that only fill a vector up are as the last one."""
    stream, raw = work.stream, work.raw
    blocks, some = -(-sequences * size // WORD), raw.shape[0] // 4
    for first in range(0, blocks, some):
        here = min(some, blocks - first)
        for block in range(here):
            c0, c1, c2, c3 = u64(first + block + 1), u64(0), u64(site), u64(step)
            k0, k1 = u64(key0), u64(key1)
            for _ in range(10):
                h0, l0 = high_word(c0, u64(0xD2E7470EE14C6C93)), c0 * u64(0xD2E7470EE14C6C93)
                h1, l1 = high_word(c2, u64(0xCA5A826395121157)), c2 * u64(0xCA5A826395121157)
                c0, c1, c2, c3 = h1 ^ c1 ^ k0, l1, h0 ^ c3 ^ k1, l0
                k0 += u64(0x9E3779B97F4A7C15)
                k1 += u64(0xBB67AE8584CAA73B)
            raw[4 * block], raw[4 * block + 1], raw[4 * block + 2], raw[4 * block + 3] = c0, c1, c2, c3
        for block in range(here):
            stream[first + block] = at_least(start(raw) + 32 * block, np.uint16(threshold))
    groups, rows = kept.shape[1], work.rows
    for w in range(-(-size // WORD)):
        for b in range(groups * WORD):
            place = min(b, sequences - 1) * size
            at, shift = place // WORD + w, np.uint32(place % WORD)  # a sequence need not begin where a word does
            two = np.uint32(stream[at]) | (np.uint32(stream[at + 1]) << np.uint32(WORD))
            rows[b] = np.uint16(two >> shift)
        for group in range(groups):
            turn(start(rows) + 2 * WORD * group, start(kept) + 2 * (WORD * w * groups + group), groups)


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
def dropped_scores(x, kept, scale, y):  # type: ignore[no-untyped-def]
    """y = x where its bit is set, scaled, else 0, for attention weights (H, keys, queries, B), whose elements are counted by head, query,
    key."""
    heads, tokens, padded = x.shape[0], x.shape[1], x.shape[3]
    for h in range(heads):
        for j in range(tokens):
            for i in range(tokens):
                n, place = (h * tokens + i) * tokens + j, 4 * ((h * tokens + j) * tokens + i) * padded
                for b in range(0, padded, LANES):
                    at = start(x) + place + 4 * b
                    into = start(y) + place + 4 * b
                    dropped_numbers(0, at, kept[n, b // WORD], b % WORD, scale, scale, at, into)


@compiled
def dropped(x, kept, scale, y):  # type: ignore[no-untyped-def]
    """The same for states (D, T, B), whose elements are counted by token, feature."""
    width, tokens, padded = x.shape
    for d in range(width):
        for t in range(tokens):
            n, place = t * width + d, 4 * (d * tokens + t) * padded
            for b in range(0, padded, LANES):
                at, into = start(x) + place + 4 * b, start(y) + place + 4 * b
                dropped_numbers(0, at, kept[n, b // WORD], b % WORD, scale, scale, at, into)


@compiled
def dropped_add(x, kept, scale, keep, onto, y):  # type: ignore[no-untyped-def]
    """y = keep onto + dropped x, for states (D, T, B)."""
    width, tokens, padded = x.shape
    for d in range(width):
        for t in range(tokens):
            n, place = t * width + d, 4 * (d * tokens + t) * padded
            for b in range(0, padded, LANES):
                at, old, into = start(x) + place + 4 * b, start(onto) + place + 4 * b, start(y) + place + 4 * b
                dropped_numbers(1, at, kept[n, b // WORD], b % WORD, scale, keep, old, into)


@elementwise
def scaled(x, factor, y):  # type: ignore[no-untyped-def]
    for d in range(x.shape[0]):
        for r in range(x.shape[1]):
            y[d, r] = factor * x[d, r]
