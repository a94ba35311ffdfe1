"""MASK: a dropout mask, `scale` for kept elements and 0 for others, from sixteen bits of Philox per element (`member_functions.py`).

    out: buffer, offset, site, threshold, bits of the scale, size, rows, lanes, step | elements (rows) | out offsets

Lane l of row r is element e[r] + l step.
"""

from numba import types

from thousandfold.codes import APART, KEY, REGISTERS, STEP
from thousandfold.kernels.gather import place
from thousandfold.kernels.inner import compiled
from thousandfold.kernels.memory import address_of, ahead, double_of, pointer_from, pointer_to, real
from thousandfold.kernels.philox import blocks_of_words
from thousandfold.kernels.registers import LANES

WORDS = 4  # words of a block of Philox; each serves four elements


words_at, draws_at = pointer_from(types.uint64), pointer_from(types.uint16)


@compiled
def mask(scratch, table, bases, p):  # type: ignore[no-untyped-def]
    out, site, threshold, size, rows, lanes, step = place(scratch, bases, p, 0), p[2], p[3], p[5], p[6], p[7], p[8]
    keep, drop = real(out, double_of(p[4])), real(out, 0.0)
    element = ahead(p, 9)
    to = ahead(element, rows)
    key, now = words_at(bases[KEY]), words_at(bases[STEP])
    room = address_of(pointer_to(scratch, scratch.ctypes.data, REGISTERS * APART))
    each = 8 * WORDS  # bytes of a block
    for k in range(0, -(-size // 16), LANES):
        blocks_of_words(key[0], key[1], types.uint64(site), now[0], types.uint64(k), room + each * k)
    draws = draws_at(room)
    for r in range(rows):
        z, y = ahead(draws, element[r]), ahead(out, to[r])
        for lane in range(lanes):
            y[lane] = keep if z[lane * step] >= threshold else drop
