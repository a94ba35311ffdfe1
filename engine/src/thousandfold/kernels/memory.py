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
)

REGISTER = 4 * LANES  # bytes of a vector register of this processor


def at(builder: Any, pointer: Any, index: Any, kind: Any) -> Any:
    """Return the pointer to the vector that begins `index` numbers behind a pointer."""
    return builder.bitcast(builder.gep(pointer, [index]), kind.as_pointer())


@intrinsic
def pointer_to(context, like, address, offset):  # type: ignore[no-untyped-def]
    """Return the pointer to number `offset` behind an address. Numbers have the type of the array `like`."""
    kind = types.CPointer(like.dtype)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.gep(builder.inttoptr(args[1], context.get_value_type(kind)), [args[2]])

    return kind(like, types.int64, types.int64), generate


@intrinsic
def ahead(context, pointer, count):  # type: ignore[no-untyped-def]
    """Return a pointer moved by `count` numbers."""
    return pointer(pointer, types.int64), lambda context, builder, signature, args: builder.gep(args[0], [args[1]])


@intrinsic
def address_of(context, pointer):  # type: ignore[no-untyped-def]
    return types.int64(pointer), lambda context, builder, signature, args: builder.ptrtoint(args[0], INT)


@intrinsic
def load(context, pointer, index):  # type: ignore[no-untyped-def]
    """Return the vector that begins at number `index` behind a pointer."""
    kind = Vector(pointer.dtype)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = context.get_value_type(kind)
        return builder.load(at(builder, args[0], args[1], vector), align=width(vector))

    return kind(pointer, types.int64), generate


@intrinsic
def store(context, pointer, index, value):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, index, value = args
        builder.store(value, at(builder, pointer, index, value.type), align=width(value.type))
        return context.get_dummy_value()

    return types.void(pointer, types.int64, value), generate


@intrinsic
def load_some(context, pointer, index, count):  # type: ignore[no-untyped-def]
    """Return a vector of which at most the first `count` numbers are read. The others are zeros, and their memory is not read."""
    kind = Vector(pointer.dtype)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = context.get_value_type(kind)
        place = at(builder, args[0], args[1], vector)
        return load_masked(builder, place, first_of(builder, args[2], vector.count), vector, width(vector))

    return kind(pointer, types.int64, types.int64), generate


@intrinsic
def store_some(context, pointer, index, value, count):  # type: ignore[no-untyped-def]
    """Write at most the first `count` numbers of a vector."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, index, value, count = args
        place, mask = at(builder, pointer, index, value.type), first_of(builder, count, value.type.count)
        store_masked(builder, value, place, mask, width(value.type))
        return context.get_dummy_value()

    return types.void(pointer, types.int64, value, types.int64), generate


@intrinsic
def spread(context, pointer, number):  # type: ignore[no-untyped-def]
    """Return a vector with a number in all lanes, of the type of the pointer."""
    kind = Vector(pointer.dtype)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return broadcast(builder, args[1], kind.lanes)

    return kind(pointer, pointer.dtype), generate


@intrinsic
def lanes_of(context, pointer):  # type: ignore[no-untyped-def]
    """Return the number of lanes of a vector of the pointer's type, as a constant."""
    kind = Vector(pointer.dtype)
    return types.int64(pointer), lambda context, builder, signature, args: INT(kind.lanes)


@intrinsic
def real(context, pointer, number):  # type: ignore[no-untyped-def]
    """Convert a number to the type of the pointer."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.cast(builder, args[1], number, pointer.dtype)

    return pointer.dtype(pointer, number), generate


@intrinsic
def double_of(context, bits):  # type: ignore[no-untyped-def]
    return types.float64(bits), lambda context, builder, signature, args: builder.bitcast(args[0], ir.DoubleType())


@intrinsic
def copy(context, to, from_, count):  # type: ignore[no-untyped-def]
    """Copy numbers between two places that do not overlap."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        size = builder.mul(args[2], INT(to.dtype.bitwidth // 8))
        kinds = [args[0].type, args[1].type, INT, ir.IntType(1)]
        move = declare_function(builder, "llvm.memcpy.p0.p0.i64", ir.VoidType(), kinds)
        builder.call(move, [*args[:2], size, ir.IntType(1)(0)])
        return context.get_dummy_value()

    return types.void(to, from_, types.int64), generate


@intrinsic
def register_lanes(context, pointer):  # type: ignore[no-untyped-def]
    """Return the number of lanes of a register of this processor, as a constant."""
    lanes = REGISTER * 8 // pointer.dtype.bitwidth
    return types.int64(pointer), lambda context, builder, signature, args: INT(lanes)


def pointer_from(number: Any) -> Any:
    """Return a function that converts an address to a pointer to numbers of this type."""
    kind = types.CPointer(number)

    @intrinsic
    def function(context, address):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(kind))

        return kind(types.int64), generate

    return function


whole_numbers = pointer_from(types.int64)


@joint
def operand_at(like, bases, p, i):  # type: ignore[no-untyped-def]
    """Return the pointer to an operand with buffer p[i] and offset p[i + 1]."""
    return pointer_to(like, bases[p[i]], p[i + 1])
