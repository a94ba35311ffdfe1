"""Vectors as values of compiled functions: sixteen floats or eight doubles, on any processor.

LLVM puts such a vector into one, two or four registers, depending on the processor. So a sum over lanes has the same order everywhere, and
the same code gives the same bits with AVX-512, AVX2 and NEON. Addresses are pointers to numbers (CPointer).
"""

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.core.imputils import lower_cast
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, register_model

from thousandfold.kernels.registers import broadcast

BYTES = 64  # bytes of a vector


class Vector(types.Type):
    """A vector of numbers of one type."""

    def __init__(self, number: Any) -> None:
        self.number, self.lanes = number, BYTES * 8 // number.bitwidth
        super().__init__(f"vector({number})")


class Truths(types.Type):
    """A vector of booleans, one for each lane."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(f"truths({lanes})")


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.VectorType(manager.lookup(kind.number).get_value_type(), kind.lanes))


@register_model(Truths)
class TruthsModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.VectorType(ir.IntType(1), kind.lanes))


@lower_cast(types.Float, Vector)
@lower_cast(types.Integer, Vector)
def spread_number(context, builder, given, kind, number):  # type: ignore[no-untyped-def]
    """Broadcast a number that is combined with a vector."""
    return broadcast(builder, context.cast(builder, number, given, kind.number), kind.lanes)


def width(kind: Any) -> int:
    """Return the bytes of a number."""
    return BYTES // int(kind.count)


# Operators of two vectors, or of a vector and a number.
ARITHMETIC = {operator.add: "fadd", operator.sub: "fsub", operator.mul: "fmul", operator.truediv: "fdiv"}
COMPARED = {
    operator.eq: ("==", "ordered"),
    operator.ne: ("!=", "unordered"),  # true for NaN, as everywhere
    operator.lt: ("<", "ordered"),
    operator.le: ("<=", "ordered"),
    operator.gt: (">", "ordered"),
    operator.ge: (">=", "ordered"),
}
LOGIC = {operator.and_: "and_", operator.or_: "or_"}


def vector_of(args: Any) -> Any:
    """Return the type of the vector among two arguments, of which one may be a number."""
    found = [one for one in args if isinstance(one, Vector)]
    if (
        len(args) == 2
        and found
        and all(one == found[0] or isinstance(one, types.Float | types.Integer) for one in args)
    ):
        return found[0]
    return None


def register(key: Any, build: Callable[..., Any], returned: Callable[[Any], Any]) -> None:
    class PairTemplate(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            kind = vector_of(args)
            return signature(returned(kind), kind, kind) if kind else None

    infer_global(key)(PairTemplate)
    lower_builtin(key, Vector, Vector)(lambda context, builder, sig, args: build(builder, *args))


for _key, _name in ARITHMETIC.items():
    register(_key, lambda builder, x, y, name=_name: getattr(builder, name)(x, y), lambda kind: kind)
for _key, (_sign, _kind) in COMPARED.items():
    register(
        _key,
        lambda builder, x, y, sign=_sign, kind=_kind: getattr(builder, f"fcmp_{kind}")(sign, x, y),
        lambda kind: Truths(kind.lanes),
    )


def register_logic(key: Any, name: str) -> None:
    class LogicTemplate(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            return signature(args[0], *args) if isinstance(args[0], Truths) and args[0] == args[1] else None

    infer_global(key)(LogicTemplate)
    lower_builtin(key, Truths, Truths)(lambda context, builder, sig, args: getattr(builder, name)(*args))


for _key, _name in LOGIC.items():
    register_logic(_key, _name)


@infer_global(operator.neg)
class Negative(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(args[0], args[0]) if isinstance(args[0], Vector) else None


@lower_builtin(operator.neg, Vector)
def negative(context, builder, sig, args):  # type: ignore[no-untyped-def]
    return builder.fneg(args[0])
