"""Vectors as values of compiled functions, sixteen floats or eight doubles on any processor, and the LLVM code that uses them.

LLVM puts such a vector into one, two or four registers, depending on the processor. So a sum over lanes has the same order everywhere, and
the same code gives the same bits with AVX-512, AVX2 and NEON. Addresses are pointers to numbers (CPointer).
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core.datamodel import models
from numba.core.imputils import lower_cast
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, register_model

from thousandfold.kernels.inner import SETTINGS


def host_features() -> set[str]:
    """Return the features of the processor for which numba compiles."""
    if SETTINGS.CPU_FEATURES is not None:  # NUMBA_CPU_FEATURES
        return {name[1:] for name in SETTINGS.CPU_FEATURES.split(",") if name.startswith("+")}
    return {name for name, is_there in binding.get_host_cpu_features().items() if is_there}


def lanes(features: set[str]) -> int:
    """Return the number of floats in a vector register: 16 with AVX-512, 8 with AVX2, 4 on ARM."""
    if "avx512f" in features:
        return 16
    return 8 if "avx" in features else 4


LANES = lanes(host_features())
INT, SHORT = ir.IntType(64), ir.IntType(32)


def store(builder: Any, value: Any, place: Any, align: int = 4) -> None:
    builder.store(value, builder.inttoptr(place, value.type.as_pointer()), align=align)


def first_of(builder: Any, count: Any, lanes: int) -> Any:
    """Return a mask of at most the first `count` lanes of a vector."""
    places = ir.Constant(ir.VectorType(INT, lanes), list(range(lanes)))
    return builder.icmp_signed("<", places, broadcast(builder, count, lanes))


def declare_function(builder: Any, name: str, returned: Any, kinds: list[Any]) -> Any:
    """Declare an LLVM intrinsic."""
    return builder.module.globals.get(name) or ir.Function(builder.module, ir.FunctionType(returned, kinds), name)


def suffix(vector: Any) -> str:
    """Return the suffix of the names of LLVM intrinsics for a vector type."""
    return f"v{vector.count}{'f32' if vector.element == ir.FloatType() else 'f64'}"


def call_lanewise(builder: Any, name: str, *args: Any) -> Any:
    """Call an LLVM intrinsic on each lane of one or more vectors."""
    vector = args[0].type
    return builder.call(declare_function(builder, f"llvm.{name}.{suffix(vector)}", vector, [vector] * len(args)), args)


def load_masked(builder: Any, place: Any, mask: Any, vector: Any, align: int) -> Any:
    """Return a vector of which only the lanes in `mask` are read. The others are zeros, and their memory is not read."""
    kinds = [place.type, SHORT, mask.type, vector]
    function = declare_function(builder, f"llvm.masked.load.{suffix(vector)}.p0", vector, kinds)
    return builder.call(function, [place, SHORT(align), mask, ir.Constant(vector, [0.0] * vector.count)])


def store_masked(builder: Any, value: Any, place: Any, mask: Any, align: int) -> None:
    kinds = [value.type, place.type, SHORT, mask.type]
    function = declare_function(builder, f"llvm.masked.store.{suffix(value.type)}.p0", ir.VoidType(), kinds)
    builder.call(function, [value, place, SHORT(align), mask])


def load_lanes(builder: Any, place: Any, mask: Any, vector: Any, align: int) -> Any:
    """Return a vector, of which only the lanes in `mask` are read, if there is one."""
    if mask is None:
        return builder.load(place, align=align)
    return load_masked(builder, place, mask, vector, align)


def store_lanes(builder: Any, value: Any, place: Any, mask: Any, align: int) -> None:
    if mask is None:
        builder.store(value, place, align=align)
    else:
        store_masked(builder, value, place, mask, align)


def shuffle(builder: Any, x: Any, y: Any, places: list[int]) -> Any:
    """Return a vector of the elements at `places` in the concatenation of x and y."""
    return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(SHORT, len(places)), places))


def broadcast(builder: Any, number: Any, lanes: int) -> Any:
    """Return a vector with a number in all lanes."""
    empty = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
    first = builder.insert_element(empty, number, SHORT(0))
    return shuffle(builder, first, empty, [0] * lanes)


BYTES = 64  # bytes of a vector


def written(signature: Any, build: Callable[..., Any]) -> tuple[Any, Any]:
    """Return what an intrinsic returns: its signature, and a function that has `build` write its LLVM code from a builder and operands."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        result = build(builder, *args)
        return context.get_dummy_value() if signature.return_type == types.void else result

    return signature, generate


class Vector(types.Type):
    """A vector of numbers of one type."""

    def __init__(self, number: Any) -> None:
        self.number, self.lanes = number, BYTES * 8 // number.bitwidth
        self.llvm = ir.VectorType(ir.FloatType() if number.bitwidth == 32 else ir.DoubleType(), self.lanes)
        super().__init__(f"vector({number})")


class Truths(types.Type):
    """A vector of booleans, one for each lane."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(f"truths({lanes})")


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.llvm)


@register_model(Truths)
class TruthsModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.VectorType(ir.IntType(1), kind.lanes))


@lower_cast(types.Float, Vector)
@lower_cast(types.Integer, Vector)
def spread_number(context, builder, source, kind, number):  # type: ignore[no-untyped-def]
    """Broadcast a number that is combined with a vector."""
    return broadcast(builder, context.cast(builder, number, source, kind.number), kind.lanes)


def width(kind: Any) -> int:
    """Return the bytes of a number."""
    return BYTES // int(kind.count)


# The LLVM instruction of each operator, and its first argument if it has one.
ARITHMETIC = {
    operator.add: ("fadd",),
    operator.sub: ("fsub",),
    operator.mul: ("fmul",),
    operator.truediv: ("fdiv",),
}
COMPARED = {
    operator.eq: ("fcmp_ordered", "=="),
    operator.ne: ("fcmp_unordered", "!="),  # true for NaN, as everywhere
    operator.lt: ("fcmp_ordered", "<"),
    operator.le: ("fcmp_ordered", "<="),
    operator.gt: ("fcmp_ordered", ">"),
    operator.ge: ("fcmp_ordered", ">="),
}
LOGIC = {operator.and_: ("and_",), operator.or_: ("or_",)}


def vector_of(args: Any) -> Any:
    """Return the type of the vector among two arguments, of which one may be a number."""
    vectors = [argument for argument in args if isinstance(argument, Vector)]
    if (
        len(args) == 2
        and vectors
        and all(argument == vectors[0] or isinstance(argument, types.Float | types.Integer) for argument in args)
    ):
        return vectors[0]
    return None


def of_vectors(args: Any) -> Any:
    kind = vector_of(args)
    return signature(kind, kind, kind) if kind else None


def of_comparison(args: Any) -> Any:
    kind = vector_of(args)
    return signature(Truths(kind.lanes), kind, kind) if kind else None


def of_truths(args: Any) -> Any:
    return signature(args[0], *args) if isinstance(args[0], Truths) and args[0] == args[1] else None


def of_one_vector(args: Any) -> Any:
    return signature(args[0], args[0]) if isinstance(args[0], Vector) else None


def register(key: Any, kinds: Sequence[Any], signature_of: Callable[[Any], Any], name: str, *first: str) -> None:
    """Add an operator. `signature_of` returns its signature for these types of arguments, or None. `name`, `first`: its instruction."""

    class OperatorTemplate(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            return signature_of(args)

    infer_global(key)(OperatorTemplate)
    lower_builtin(key, *kinds)(lambda context, builder, sig, args: getattr(builder, name)(*first, *args))


for _table, _kind, _signature_of in (
    (ARITHMETIC, Vector, of_vectors),
    (COMPARED, Vector, of_comparison),
    (LOGIC, Truths, of_truths),
):
    for _key, _instruction in _table.items():
        register(_key, (_kind, _kind), _signature_of, *_instruction)
register(operator.neg, (Vector,), of_one_vector, "fneg")
