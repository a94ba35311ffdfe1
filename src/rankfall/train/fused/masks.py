"""The masks of dropout, the same bits that `train/dropout.py` draws, and what they do to activations.

There, 16 bits of Philox-4x64-10 decide an element, and the elements of a batch (sequence by sequence) are in order. Here bits[w, b] says
which of the elements 16 w .. 16 w + 15 of sequence b are kept.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rankfall.train.fused.arithmetic import f32, u64
from rankfall.train.fused.compiled import compiled, elementwise


@intrinsic
def high_word(context, x, y):  # type: ignore[no-untyped-def]
    """The upper half of the product of two 64-bit words."""
    wide = ir.IntType(128)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, wide(64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@compiled
def kept(word, threshold):  # type: ignore[no-untyped-def]
    """Four bits: which of the four 16-bit numbers in a word are at least the threshold."""
    low = u64(0xFFFF)
    a = u64((word & low) >= threshold)
    b = u64(((word >> u64(16)) & low) >= threshold)
    c = u64(((word >> u64(32)) & low) >= threshold)
    d = u64((word >> u64(48)) >= threshold)
    return a | (b << u64(1)) | (c << u64(2)) | (d << u64(3))


@compiled
def draw(key0, key1, site, step, threshold, sequences, size, stream, bits):  # type: ignore[no-untyped-def]
    """Fills bits (words, B) for `size` elements a sequence; sequences that only fill a vector up are as the last one. `stream` is room
    for the bits in their order."""
    threshold = u64(threshold)
    for block in range(-(-sequences * size // 16)):
        c0, c1, c2, c3 = u64(block + 1), u64(0), u64(site), u64(step)
        k0, k1 = u64(key0), u64(key1)
        for _ in range(10):
            h0, l0 = high_word(c0, u64(0xD2E7470EE14C6C93)), c0 * u64(0xD2E7470EE14C6C93)
            h1, l1 = high_word(c2, u64(0xCA5A826395121157)), c2 * u64(0xCA5A826395121157)
            c0, c1, c2, c3 = h1 ^ c1 ^ k0, l1, h0 ^ c3 ^ k1, l0
            k0 += u64(0x9E3779B97F4A7C15)
            k1 += u64(0xBB67AE8584CAA73B)
        found = kept(c0, threshold) | (kept(c1, threshold) << u64(4))
        stream[block] = found | (kept(c2, threshold) << u64(8)) | (kept(c3, threshold) << u64(12))
    words = -(-size // 16)
    for b in range(bits.shape[1]):
        place = min(b, sequences - 1) * size
        first, shift = place // 16, place % 16
        for w in range(words):
            found = np.uint32(stream[first + w]) >> np.uint32(shift)
            if shift:  # a sequence need not begin where a word does
                found |= np.uint32(stream[first + w + 1]) << np.uint32(16 - shift)
            bits[w, b] = np.uint16(found & np.uint32(0xFFFF))


@elementwise
def dropped_scores(x, bits, scale, y):  # type: ignore[no-untyped-def]
    """y = x where its bit is set, scaled, else 0, for attention weights (H, keys, queries, B), whose elements are counted by head, query,
    key."""
    heads, tokens = x.shape[0], x.shape[1]
    for h in range(heads):
        for j in range(tokens):
            for i in range(tokens):
                n = (h * tokens + i) * tokens + j
                word, place = n // 16, np.uint16(n % 16)
                for b in range(x.shape[3]):
                    y[h, j, i, b] = x[h, j, i, b] * scale * f32((bits[word, b] >> place) & np.uint16(1))


@elementwise
def dropped(x, bits, scale, y):  # type: ignore[no-untyped-def]
    """The same for states (D, T, B), whose elements are counted by token, feature."""
    width, tokens = x.shape[0], x.shape[1]
    for d in range(width):
        for t in range(tokens):
            n = t * width + d
            word, place = n // 16, np.uint16(n % 16)
            for b in range(x.shape[2]):
                y[d, t, b] = x[d, t, b] * scale * f32((bits[word, b] >> place) & np.uint16(1))


@elementwise
def scaled(x, factor, y):  # type: ignore[no-untyped-def]
    for d in range(x.shape[0]):
        for r in range(x.shape[1]):
            y[d, r] = factor * x[d, r]
