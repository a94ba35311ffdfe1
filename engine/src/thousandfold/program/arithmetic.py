"""Lowerings of elementwise operations, and of dropout masks, which equal those of `member_functions.py`."""

from collections.abc import Callable
from typing import Any

import torch

from thousandfold.codes import MASK
from thousandfold.operations import OPERATIONS
from thousandfold.program.atoms import Full, OneHot, Unsupported, View, align, flat
from thousandfold.program.draft import (
    AtenCall,
    ProgramDraft,
    is_integer,
    lanes_last,
    lowers,
    number_of,
    offsets_in,
    places,
    stored_number,
    view_and_places,
)

UNARY, BINARY = (
    {name: operation.name for operation in OPERATIONS if operation.operands == count for name in operation.aten.split()}
    for count in (1, 2)
)
FOLDED = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b}
Apply = Callable[..., View]  # (operation, *operands)
Composition = Callable[..., Any]
OF_BOOLEANS = ("bitwise_not", "bitwise_and", "bitwise_or")


@lowers(*UNARY)
def lower_unary(draft: ProgramDraft, call: AtenCall) -> Any:
    x = call.args[0]
    if call.name in OF_BOOLEANS and not call.is_bool:
        raise Unsupported(f"{call.name} of integers")
    if isinstance(x, Full):
        number = torch.tensor(x.number, dtype=torch.bool if call.name in OF_BOOLEANS else torch.float64)
        return Full(float(call.target(number)), call.shape)
    return draft.pointwise(UNARY[call.name], [x], call.shape)


@lowers(*BINARY)
def lower_binary(draft: ProgramDraft, call: AtenCall) -> Any:
    a, b = (number_of(x) for x in call.args[:2])
    alpha = call.kwargs.get("alpha", 1)
    if call.is_bool and call.name in ("add", "sub"):
        raise Unsupported(f"{call.name} of booleans")
    if call.name in OF_BOOLEANS and not call.is_bool:
        raise Unsupported(f"{call.name} of integers")
    if not isinstance(a, View) and not isinstance(b, View) and call.name in FOLDED:
        return Full(FOLDED[call.name](a, b * alpha), call.shape)
    if alpha != 1:
        b = draft.pointwise("MUL", [b, float(alpha)], b.shape) if isinstance(b, View) else b * alpha
    if rounding := call.kwargs.get("rounding_mode"):
        if rounding != "floor" or not is_integer(call.value.dtype):
            raise Unsupported(f"division with rounding_mode {rounding}")
        return draft.pointwise("FLOOR", [draft.pointwise("DIV", [a, b], call.shape)], call.shape)
    result = draft.pointwise(BINARY[call.name], [a, b], call.shape)
    return times_one_hot(draft, a, b, result) if call.name == "mul" else result


def times_one_hot(draft: ProgramDraft, a: Any, b: Any, product: View) -> View:
    """Return the product, as one-hot if one factor is one-hot and the other has one number for each row."""
    hot, other = (a, b) if isinstance(a, OneHot) else (b, a)
    if not isinstance(hot, OneHot) or hot.shape != product.shape:
        return product
    if isinstance(other, View) and (len(other.dims) != len(hot.dims) or other.dims[hot.dim]):
        return product
    shape = tuple(1 if i == hot.dim else size for i, size in enumerate(hot.shape))
    number = draft.pointwise("MUL", [hot.number, other], shape)
    return OneHot(product.value, product.offset, product.dims, hot.dim, number)


def lowers_pointwise(*names: str) -> Callable[[Composition], Composition]:
    """Register a lowering to pointwise operations. It gets a function that applies one, the call, and the call's arguments as views or
    numbers."""

    def mark(function: Composition) -> Composition:
        @lowers(*names)
        def lower(draft: ProgramDraft, call: AtenCall) -> Any:
            apply = lambda op, *ins: draft.pointwise(op, ins, call.shape)  # noqa: E731
            return function(apply, call, *(None if x is None else number_of(x) for x in call.args))

        return function

    return mark


@lowers_pointwise("where")
def lower_where(apply: Apply, call: AtenCall, condition: Any, x: Any, y: Any) -> Any:
    return apply("WHERE", condition, x, y)


@lowers_pointwise("clamp")
def lower_clamp(apply: Apply, call: AtenCall, x: Any, least: Any = None, most: Any = None) -> Any:
    for op, bound in (("MAXI", call.kwargs.get("min", least)), ("MINI", call.kwargs.get("max", most))):
        if bound is not None:
            x = apply(op, x, number_of(bound))
    return x


@lowers_pointwise("relu")
def lower_relu(apply: Apply, call: AtenCall, x: Any) -> Any:
    return apply("MAXI", x, 0.0)


@lowers_pointwise("elu")
def lower_elu(apply: Apply, call: AtenCall, x: Any, alpha: Any = 1.0, scale: Any = 1.0, inner: Any = 1.0) -> Any:
    below = apply("MUL", apply("EXPM1", apply("MUL", x, inner)), alpha * scale)
    return apply("WHERE", apply("GT", x, 0.0), apply("MUL", x, scale), below)


@lowers_pointwise("pow")
def lower_power(apply: Apply, call: AtenCall, x: Any, exponent: Any) -> Any:
    if is_integer(call.value.dtype):
        raise Unsupported("powers of integers")
    if not isinstance(x, View) or isinstance(exponent, View):
        return apply("POW", x, exponent)
    if exponent == 0:
        return Full(1.0, call.shape)
    if exponent == 1:
        return x
    if exponent in (2, 3, 4, -2):
        square = apply("MUL", x, x)
        if exponent in (3, 4):
            return apply("MUL", square, x if exponent == 3 else square)
        return square if exponent == 2 else apply("RECIP", square)
    if exponent == -1.5:
        return apply("DIV", apply("RSQRT", x), x)
    if exponent in (0.5, -0.5, -1):
        return apply({0.5: "SQRT", -0.5: "RSQRT", -1: "RECIP"}[exponent], x)
    return apply("POW", x, exponent)


@lowers_pointwise("remainder")
def lower_remainder(apply: Apply, call: AtenCall, a: Any, b: Any) -> Any:
    """Lower a remainder of integers, such as indices counted from either end."""
    if not all(map(is_integer, call.dtypes)) or not is_integer(call.value.dtype):
        raise Unsupported("remainder of numbers that are no integers")
    return apply("SUB", a, apply("MUL", apply("FLOOR", apply("DIV", a, b)), b))


@lowers_pointwise("addcmul", "addcdiv")
def lower_addcmul(apply: Apply, call: AtenCall, x: Any, a: Any, b: Any) -> Any:
    """Return x + value * (a * b), or with a / b."""
    product = apply("MUL" if call.name == "addcmul" else "DIV", a, b)
    return apply("ADD", x, apply("MUL", product, number_of(call.kwargs.get("value", 1))))


@lowers_pointwise("lerp")
def lower_lerp(apply: Apply, call: AtenCall, x: Any, y: Any, weight: Any) -> Any:
    """Return x + weight * (y - x), computed from the nearer end."""
    if isinstance(weight, View):
        raise Unsupported("lerp by a tensor")
    apart = apply("SUB", y, x)
    if weight < 0.5:
        return apply("ADD", x, apply("MUL", apart, weight))
    return apply("SUB", y, apply("MUL", apart, 1 - weight))


@lowers("_to_copy", "convert_element_type")
def lower_conversion(draft: ProgramDraft, call: AtenCall) -> Any:
    """Lower a conversion. The machine has one number format, so it refuses conversions that change more than rounding."""
    x, into, was = call.args[0], call.value.dtype, call.dtypes[0]
    if into == torch.bool and was != torch.bool:
        return draft.pointwise("NE", [number_of(x), 0.0], call.shape)
    if is_integer(into) and was.is_floating_point:
        raise Unsupported("numbers made integers")
    return x


@lowers("full_like", "full")
def lower_full(draft: ProgramDraft, call: AtenCall) -> Any:
    if isinstance(call.args[1], View):
        raise Unsupported(f"{call.name} with a number that data enter")
    return Full(stored_number(number_of(call.args[1]), call.value.dtype), call.shape)


@lowers("scalar_tensor")
def lower_scalar(draft: ProgramDraft, call: AtenCall) -> Any:
    return Full(stored_number(call.args[0], call.value.dtype), ())


@lowers("dropout_mask")
def lower_mask(draft: ProgramDraft, call: AtenCall) -> Any:
    """Lower a mask in the layout of its tensor. Elements are counted in logical order."""
    x, site, threshold, scale = call.args
    x = draft.solid(x)
    extents = flat(align([x], x.shape))
    order = lanes_last(extents, lambda extent: -extent.strides[0])
    out, where = view_and_places(order, extents, len(x.dims))
    logical = places(extents)[0]
    outer, inner = order[:-1], order[-1:]
    fields = {
        "site": site,
        "threshold": threshold,
        "scale": scale,
        "size": out.value.size,
        "run": inner[0].size if inner else 1,
        "stride": logical[id(inner[0])] if inner else 1,
        "element": offsets_in(logical, outer),
        "into": offsets_in(where, outer),
    }
    return draft.add(MASK, out, [], fields)
