"""Pointers to numbers, and loads and stores of whole vectors or of their first numbers."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from thousandfold.kernels.inner import joint
from thousandfold.kernels.vector import (
    INT,
    LANES,
    Vector,
    broadcast,
    declare_function,
    first_of,
    load_masked,
    store_masked,
    width,
    written,
)

REGISTER = 4 * LANES  # bytes of a vector register of this processor


def at(builder: Any, pointer: Any, index: Any, kind: Any) -> Any:
    """Return the pointer to the vector that begins `index` numbers behind a pointer."""
    return builder.bitcast(builder.gep(pointer, [index]), kind.as_pointer())


@intrinsic
def pointer_to(context, like, address, offset):  # type: ignore[no-untyped-def]
    """Return the pointer to number `offset` behind an address. Numbers have the type of the array `like`."""
    number = ir.FloatType() if like.dtype == types.float32 else ir.DoubleType()
    return written(
        types.CPointer(like.dtype)(like, types.int64, types.int64),
        lambda builder, _, address, offset: builder.gep(builder.inttoptr(address, number.as_pointer()), [offset]),
    )


@intrinsic
def ahead(context, pointer, count):  # type: ignore[no-untyped-def]
    """Return a pointer moved by `count` numbers."""
    return written(pointer(pointer, types.int64), lambda builder, x, i: builder.gep(x, [i]))


@intrinsic
def address_of(context, pointer):  # type: ignore[no-untyped-def]
    return written(types.int64(pointer), lambda builder, x: builder.ptrtoint(x, INT))


@intrinsic
def load(context, pointer, index):  # type: ignore[no-untyped-def]
    """Return the vector that begins at number `index` behind a pointer."""
    kind = Vector(pointer.dtype)
    return written(
        kind(pointer, types.int64),
        lambda builder, x, i: builder.load(at(builder, x, i, kind.llvm), align=width(kind.llvm)),
    )


@intrinsic
def store(context, pointer, index, value):  # type: ignore[no-untyped-def]
    return written(
        types.void(pointer, types.int64, value),
        lambda builder, x, i, v: builder.store(v, at(builder, x, i, v.type), align=width(v.type)),
    )


@intrinsic
def load_some(context, pointer, index, count):  # type: ignore[no-untyped-def]
    """Return a vector of which at most the first `count` numbers are read. The others are zeros, and their memory is not read."""
    kind = Vector(pointer.dtype)

    def build(builder: Any, x: Any, i: Any, count: Any) -> Any:
        mask = first_of(builder, count, kind.lanes)
        return load_masked(builder, at(builder, x, i, kind.llvm), mask, kind.llvm, width(kind.llvm))

    return written(kind(pointer, types.int64, types.int64), build)


@intrinsic
def store_some(context, pointer, index, value, count):  # type: ignore[no-untyped-def]
    """Write at most the first `count` numbers of a vector."""

    def build(builder: Any, x: Any, i: Any, v: Any, count: Any) -> None:
        store_masked(builder, v, at(builder, x, i, v.type), first_of(builder, count, v.type.count), width(v.type))

    return written(types.void(pointer, types.int64, value, types.int64), build)


@intrinsic
def spread(context, pointer, number):  # type: ignore[no-untyped-def]
    """Return a vector with a number in all lanes, of the type of the pointer."""
    kind = Vector(pointer.dtype)
    return written(kind(pointer, pointer.dtype), lambda builder, _, number: broadcast(builder, number, kind.lanes))


@intrinsic
def lanes_of(context, pointer):  # type: ignore[no-untyped-def]
    """Return the number of lanes of a vector of the pointer's type, as a constant."""
    return written(types.int64(pointer), lambda builder, _: INT(Vector(pointer.dtype).lanes))


@intrinsic
def register_lanes(context, pointer):  # type: ignore[no-untyped-def]
    """Return the number of lanes of a register of this processor, as a constant."""
    return written(types.int64(pointer), lambda builder, _: INT(REGISTER * 8 // pointer.dtype.bitwidth))


@intrinsic
def real(context, pointer, number):  # type: ignore[no-untyped-def]
    """Convert a number to the type of the pointer."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.cast(builder, args[1], number, pointer.dtype)

    return pointer.dtype(pointer, number), generate


@intrinsic
def double_of(context, bits):  # type: ignore[no-untyped-def]
    return written(types.float64(bits), lambda builder, x: builder.bitcast(x, ir.DoubleType()))


@intrinsic
def copy(context, to, from_, count):  # type: ignore[no-untyped-def]
    """Copy numbers between two places that do not overlap."""

    def build(builder: Any, to_: Any, from_: Any, count: Any) -> None:
        kinds = [to_.type, from_.type, INT, ir.IntType(1)]
        move = declare_function(builder, "llvm.memcpy.p0.p0.i64", ir.VoidType(), kinds)
        builder.call(move, [to_, from_, builder.mul(count, INT(to.dtype.bitwidth // 8)), ir.IntType(1)(0)])

    return written(types.void(to, from_, types.int64), build)


def pointer_from(number: Any) -> Any:
    """Return a function that converts an address to a pointer to integers of this type."""

    @intrinsic
    def function(context, address):  # type: ignore[no-untyped-def]
        kind = ir.IntType(number.bitwidth).as_pointer()
        return written(types.CPointer(number)(types.int64), lambda builder, x: builder.inttoptr(x, kind))

    return function


whole_numbers = pointer_from(types.int64)


@joint
def operand_at(like, bases, p, i):  # type: ignore[no-untyped-def]
    """Return the pointer to an operand with buffer p[i] and offset p[i + 1]."""
    return pointer_to(like, bases[p[i]], p[i + 1])
