"""Vector registers of the processor for which numba compiles, and LLVM code that uses them."""

from typing import Any

from llvmlite import binding, ir

from thousandfold.kernels.compiled import SETTINGS


def host_features() -> set[str]:
    """Return the features of the processor for which numba compiles."""
    if SETTINGS.CPU_FEATURES is not None:  # NUMBA_CPU_FEATURES
        return {name[1:] for name in SETTINGS.CPU_FEATURES.split(",") if name.startswith("+")}
    return {name for name, there in binding.get_host_cpu_features().items() if there}


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


def load_masked(builder: Any, place: Any, some: Any, vector: Any, align: int) -> Any:
    """Return a vector of which only the lanes `some` are read. The others are zeros, and their memory is not read."""
    kinds = [place.type, SHORT, some.type, vector]
    function = declare_function(builder, f"llvm.masked.load.{suffix(vector)}.p0", vector, kinds)
    return builder.call(function, [place, SHORT(align), some, ir.Constant(vector, [0.0] * vector.count)])


def store_masked(builder: Any, value: Any, place: Any, some: Any, align: int) -> None:
    kinds = [value.type, place.type, SHORT, some.type]
    function = declare_function(builder, f"llvm.masked.store.{suffix(value.type)}.p0", ir.VoidType(), kinds)
    builder.call(function, [value, place, SHORT(align), some])


def shuffle(builder: Any, x: Any, y: Any, places: list[int]) -> Any:
    """Return a vector of the elements at `places` in the concatenation of x and y."""
    return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(SHORT, len(places)), places))


def broadcast(builder: Any, number: Any, lanes: int) -> Any:
    """Return a vector with a number in all lanes."""
    empty = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
    first = builder.insert_element(empty, number, SHORT(0))
    return shuffle(builder, first, empty, [0] * lanes)
