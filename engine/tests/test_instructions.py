"""Each instruction of the machine against NumPy, at random sizes and layouts, for floats and doubles."""

import math
from typing import Any

import numpy as np
import pytest
from instructions import OUT, X, Y, Z, block, run

from thousandfold import codes
from thousandfold.operations import CODES
from thousandfold.program.atoms import run_strides
from thousandfold.program.emit_pointwise import blocks

SIZES = (1, 2, 3, 7, 8, 15, 16, 17, 30, 33, 48, 64, 95)


@pytest.fixture(params=["float32", "float64"])
def dtype(request: Any) -> str:
    return str(request.param)


def close(found: np.ndarray, expected: np.ndarray, terms: int = 1) -> None:
    """To the rounding of so many terms of size 1."""
    bound = 4 * math.sqrt(terms) * np.finfo(found.dtype).eps * max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found.astype(float), expected, rtol=0, atol=bound)


def offsets(sizes: list[int], strides: list[int]) -> np.ndarray:
    found = np.zeros(1, np.int64)
    for size, stride in zip(sizes, strides, strict=True):
        found = (found[:, None] + np.arange(size) * stride).ravel()
    return found


def layout(rng: np.random.Generator, sizes: list[int], last: int | None = None) -> tuple[list[int], int]:
    """Strides of a dense layout whose dimensions lie in random order, the one of number `last` innermost; and its size."""
    order = [int(i) for i in rng.permutation(len(sizes)) if i != last] + ([last] if last is not None else [])
    strides, size = [0] * len(sizes), 1
    for i in reversed(order):
        strides[i], size = size, size * sizes[i]
    return strides, size


BINARY: dict[str, Any] = {
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "DIV": np.divide,
    "MAXI": np.maximum,
    "MINI": np.minimum,
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "AND": np.logical_and,
    "OR": np.logical_or,
}
UNARY: dict[str, Any] = {
    "NEG": np.negative,
    "SQRT": np.sqrt,
    "RECIP": np.reciprocal,
    "ABS": np.abs,
    "NOT": np.logical_not,
    "FLOOR": np.floor,
    "COPY": np.positive,
    "SIGN": lambda x: (x > 0).astype(x.dtype) - (x < 0),  # as PyTorch: 0 for NaN
}


@pytest.mark.parametrize("operation", [*BINARY, *UNARY])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_the_processor_has_gives_the_very_bits(operation: str, dtype: str) -> None:
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0, 1e-40])
    pairs = np.stack(np.meshgrid(special, special)).reshape(2, -1)
    for size in (*SIZES, codes.BLOCK - 1, codes.BLOCK, codes.BLOCK + 1, 1300):
        rng = np.random.default_rng(size)
        given = rng.normal(size=(3, size + pairs.shape[1])).astype(dtype)
        given[:2, size:] = pairs
        x, y, z = given
        found = run(dtype, codes.PW, block(operation, x.size), {X: x, Y: y, Z: z}, x.size)
        expected = BINARY[operation](x, y) if operation in BINARY else UNARY[operation](x)
        np.testing.assert_array_equal(found, expected.astype(dtype))


@pytest.mark.parametrize("kind", range(4))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_reductions(kind: int, dtype: str) -> None:
    take = (np.sum, np.max, np.min, np.argmax)[kind]
    for seed, run_ in enumerate(SIZES):
        rng = np.random.default_rng(seed)
        outputs, terms = int(rng.integers(1, 5)), int(rng.choice([1, 2, 3, 10, 40]))
        x = rng.normal(size=(outputs, terms, run_)).astype(dtype)
        if kind:
            x[rng.random(x.shape) < 0.02] = np.nan
            x[rng.random(x.shape) < 0.1] = 1.5  # ties
        begins, ends = np.arange(outputs) * terms * run_, np.arange(outputs) * run_
        body = [[kind, OUT, 0, X, 0, outputs, run_, terms, 0], begins, ends, np.arange(terms) * run_]
        expected = take(x.astype(float), axis=1)
        close(run(dtype, codes.RED, body, {X: x}, outputs * run_), expected.ravel(), terms) if kind == codes.SUM else (
            np.testing.assert_array_equal(run(dtype, codes.RED, body, {X: x}, outputs * run_), expected.ravel())
        )
        if kind != codes.ARGMAX:  # along a run
            body = [[kind, OUT, 0, X, 0, outputs, 1, terms, run_], begins, np.arange(outputs)]
            found = run(dtype, codes.RED, [*body, np.arange(terms) * run_], {X: x}, outputs)
            expected = take(x.astype(float), axis=(1, 2))
            close(found, expected, x[0].size) if kind == codes.SUM else np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("seed", range(8))
def test_linear(seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    rows, count, runs = (int(rng.choice(choice)) for choice in ([1, 3, 8, 33, 48], [1, 2, 7, 50, 64], [1, 3]))
    length, biased = int(rng.choice([*SIZES, 300])), bool(rng.integers(0, 2))
    w, x, b = (rng.normal(size=shape).astype(dtype) for shape in ((count, rows), (runs, count, length), (rows,)))
    strides, size = layout(rng, [runs, rows, length], 2)
    transposed = bool(rng.integers(0, 2))
    weights = w.T.copy() if transposed else w
    of_k, of_n = (1, count) if transposed else (rows, 1)
    head = [X, 0, Y, 0, OUT, 0, Z, 0, int(biased), rows, count, runs, length]
    tables = [np.arange(count) * length, np.arange(count) * of_k, np.arange(rows) * of_n, np.arange(rows) * strides[1]]
    tables += [np.arange(rows), np.arange(runs) * count * length, np.zeros(runs), np.arange(runs) * strides[0]]
    found = run(dtype, codes.LIN, [head, *tables], {X: x, Y: weights, Z: b}, size)
    expected = np.einsum("kn,ukr->unr", w.astype(float), x.astype(float)) + (b.astype(float)[:, None] if biased else 0)
    close(found[offsets([runs, rows, length], strides)], expected.ravel(), count)


@pytest.mark.parametrize("seed", range(8))
def test_gradients_of_weights(seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    rows, columns, runs = (int(rng.choice(choice)) for choice in ([1, 3, 12, 48], [1, 5, 16, 33, 50], [1, 2, 9]))
    length = int(rng.choice([*SIZES, 300]))
    a, b = (rng.normal(size=(size, runs, length)).astype(dtype) for size in (rows, columns))
    tables = [np.arange(rows) * runs * length, np.arange(columns) * runs * length, np.arange(rows) * columns]
    tables += [np.arange(runs) * length] * 2
    body = [[X, 0, Y, 0, OUT, 0, rows, columns, runs, length], *tables]
    found = run(dtype, codes.WGRAD, body, {X: a, Y: b}, rows * columns)
    close(found, np.einsum("mur,nur->mn", a.astype(float), b.astype(float)).ravel(), runs * length)


@pytest.mark.parametrize("seed", range(12))
def test_batched_and_general(seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    outer, rows, columns, count = (
        int(rng.choice(choice)) for choice in ([1, 2], [1, 3, 10, 40], [1, 4, 7, 33], [1, 2, 5, 24])
    )
    lanes, (la, lb) = int(rng.choice(SIZES[:-2])), ((1, 1), (1, 0), (0, 1), (0, 0))[seed % 4]
    shapes = [[outer, rows, count, lanes if la else 1], [outer, columns, count, lanes if lb else 1]]
    a, b = (rng.normal(size=shape).astype(dtype) for shape in shapes)
    lanes = lanes if la or lb else 1
    strides = [layout(rng, shape, 3) for shape in (*shapes, [outer, rows, columns, lanes])]
    placed = [np.zeros(size, dtype) for _, size in strides]
    for values, (stride, _), shape, into in zip((a, b), strides, shapes, placed, strict=False):
        into[offsets(shape, stride)] = values.ravel()
    (sa, _), (sb, _), (sc, size) = strides
    tables = [np.arange(outer) * s[0] for s in (sa, sb, sc)] + [np.arange(rows) * sa[1], np.arange(count) * sa[2]]
    tables += [
        np.arange(columns) * sb[1],
        np.arange(count) * sb[2],
        np.arange(rows) * sc[1],
        np.arange(columns) * sc[2],
    ]
    head = [X, 0, Y, 0, OUT, 0]
    if la or lb:
        kind, body = codes.BMM, [[*head, la, lb, outer, rows, columns, count, lanes], *tables]
    else:
        kind, body = codes.GEN, [[*head, outer, rows, columns, count], *tables]
    found = run(dtype, kind, body, {X: placed[0], Y: placed[1]}, size)
    expected = (a.astype(float)[:, :, None] * b.astype(float)[:, None]).sum(3)  # (outer, rows, columns, lanes)
    close(found[offsets([outer, rows, columns, lanes], sc)], expected.ravel(), count)


@pytest.mark.parametrize("seed", range(24))
def test_groups_whose_operands_repeat(seed: int, dtype: str) -> None:
    """A product of two operands with any dimensions of each repeated, and a sum of it over any dimensions, in blocks that end unevenly."""
    rng = np.random.default_rng(seed)
    sizes = [int(rng.choice(choice)) for choice in ((1, 3), (2, 5, 47), (1, 7, 24), (1, 5, 16, 30, 33))]
    shapes = [[size if rng.random() < 0.6 else 1 for size in sizes] for _ in range(3)]
    (x, y), kept = (rng.normal(size=shape).astype(dtype) for shape in shapes[:2]), shapes[2]
    places = [layout(rng, shape) for shape in shapes]
    held = [np.zeros(size, dtype) for _, size in places]
    for values, into, (strides, _), shape in zip((x, y), held, places, shapes, strict=False):
        into[offsets(shape, strides)] = values.ravel()
    steps = [
        [stride * (size > 1) for stride, size in zip(strides, shape, strict=True)]
        for (strides, _), shape in zip(places, shapes, strict=True)
    ]
    dense, count = run_strides(sizes), math.prod(sizes)
    outer, most, inner = blocks(sizes)
    streams = [[X, 0, codes.COPIED_IN, 0, *steps[0]], [Y, 0, codes.COPIED_IN, 1, *steps[1]]]
    streams += [[OUT, 0, codes.IN_PLACE, 2, *dense], [OUT, count, codes.ADDED_UP, 2, *steps[2]]]
    head = [len(sizes), outer, most, inner, 4, 1, 0, 1]
    body = [head, sizes, *streams, [CODES["MUL"], 2, 0, 1, 0], [OUT, count, held[2].size]]
    found = run(dtype, codes.PW, body, {X: held[0], Y: held[1]}, count + held[2].size)
    product = np.broadcast_to(x * y, sizes)
    np.testing.assert_array_equal(found[:count], product.ravel())
    summed = product.astype(float).sum(tuple(i for i, size in enumerate(kept) if size == 1), keepdims=True)
    close(found[count:][offsets(kept, places[2][0])], summed.ravel(), count // held[2].size)


def test_a_whole_block_that_begins_where_a_shorter_one_did(dtype: str) -> None:
    """In windows that overlap. The first of the second window begins where the last of the first does."""
    sizes, strides = [2, 47, 7, 30], [44 * 30, 30, 0, 1]
    outer, most, inner = blocks(sizes)
    x = np.random.default_rng(0).normal(size=(44 + 47) * 30).astype(dtype)
    streams = [[X, 0, codes.COPIED_IN, 0, *strides], [OUT, 0, codes.IN_PLACE, 1, *run_strides(sizes)]]
    body = [[len(sizes), outer, most, inner, 2, 1, 0, 0], sizes, *streams, [CODES["COPY"], 1, 0, 0, 0]]
    assert 47 % most == 3 and 44 % most == 0
    found = run(dtype, codes.PW, body, {X: x}, math.prod(sizes))
    np.testing.assert_array_equal(found, x[offsets(sizes, strides)])
