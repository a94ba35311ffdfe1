"""The machine: run one instruction after another, for one member after another."""

import math

from thousandfold import codes
from thousandfold.kernels.blocks import pointwise
from thousandfold.kernels.gather import gather, scatter
from thousandfold.kernels.inner import compiled, entry
from thousandfold.kernels.lanes import fma, sum_of_lanes
from thousandfold.kernels.mask import mask
from thousandfold.kernels.memory import (
    ahead,
    lanes_of,
    load,
    load_some,
    pointer_to,
    real,
    spread,
    whole_numbers,
)
from thousandfold.kernels.products import general, linear, multiply_batch, weights_gradient
from thousandfold.kernels.reduce import reduce


@compiled
def execute(scratch, table, bases, program, count):  # type: ignore[no-untyped-def]
    """Run the instructions of a program."""
    for _ in range(count):
        kind, body = program[0], ahead(program, 2)
        if kind == codes.PW:
            pointwise(scratch, table, bases, body)
        elif kind == codes.LIN:
            linear(scratch, table, bases, body)
        elif kind == codes.WGRAD:
            weights_gradient(scratch, table, bases, body)
        elif kind == codes.BMM:
            multiply_batch(scratch, table, bases, body)
        elif kind == codes.RED:
            reduce(scratch, table, bases, body)
        elif kind == codes.GEN:
            general(scratch, table, bases, body)
        elif kind == codes.GATHER:
            gather(scratch, table, bases, body)
        elif kind == codes.SCATTER:
            scatter(scratch, table, bases, body)
        else:
            mask(scratch, table, bases, body)
        program = ahead(program, program[1])


BLOCK = 4096  # squares that are added in the format of x; a sum of millions would have a relative error of 1e-4


@compiled
def square_of(x, count):  # type: ignore[no-untyped-def]
    """Return the sum of squares, or infinity if it is too large for the format of x."""
    lanes, i, total = lanes_of(x), 0, 0.0
    while i < count:
        end = min(count, i + BLOCK)
        first = second = spread(x, real(x, 0.0))
        while i + 2 * lanes <= end:
            a, b = load(x, i), load(x, i + lanes)
            first, second = fma(a, a, first), fma(b, b, second)
            i += 2 * lanes
        while i < end:
            a = load_some(x, i, end - i)
            first = fma(a, a, first)
            i += lanes
        total += sum_of_lanes(first + second)
    return real(x, total)


@entry
def run_members(scratch, table, bases, strides, first, last, steps, gradient, optimiser, counts, alive):  # type: ignore[no-untyped-def]
    """Run members first .. last - 1. bases (B,): addresses of the buffers of member 0; strides (B,): bytes from member to member.
    `gradient` and `optimiser`: programs of counts[0] and counts[1] instructions. With `steps`, the second runs if the loss (the first
    result) and the gradient (counts[2] numbers) are finite; otherwise alive[m] becomes 0."""
    now, work = whole_numbers(table.ctypes.data + 8 * codes.TABLE), whole_numbers(table.ctypes.data)
    program, after = whole_numbers(gradient.ctypes.data), whole_numbers(optimiser.ctypes.data)
    for m in range(first, last):
        for i in range(codes.BUFFERS):
            now[i] = bases[i] + m * strides[i]
        execute(scratch, work, now, program, counts[0])
        if not steps:
            continue
        norm = math.sqrt(square_of(pointer_to(scratch, now[codes.GRAD], 0), counts[2]))
        loss = pointer_to(scratch, now[codes.OUT], 0)[0]
        if not (math.isfinite(norm) and math.isfinite(loss)):
            alive[m] = 0
        if alive[m]:
            pointer_to(scratch, now[codes.NORM], 0)[0] = norm
            execute(scratch, work, now, after, counts[1])
