"""Each instruction of the machine against NumPy, at random sizes and layouts, for floats and doubles."""

import math
from typing import Any

import numpy as np
import pytest
from instructions import OUT, X, Y, Z, bits, block, run

from rankfall.train.machine import codes
from rankfall.train.machine.codes import OP

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
    "SIGN": np.sign,
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


def test_a_choice(dtype: str) -> None:
    for size in SIZES:
        x, y, z = np.random.default_rng(size).normal(size=(3, size)).astype(dtype)
        x[::3] = 0
        given = {X: x, Y: y, Z: z}
        np.testing.assert_array_equal(run(dtype, codes.PW, block("WHERE", size), given, size), np.where(x != 0, y, z))


TWO_AT_ONCE: dict[str, Any] = {
    "MULADD": lambda x, y, z: x * y + z,
    "MULSUB": lambda x, y, z: z - x * y,
    "MULMUL": lambda x, y, z: x * y * z,
    "SUBMUL": lambda x, y, z: (x - y) * z,
}


@pytest.mark.parametrize("operation", TWO_AT_ONCE)
def test_two_operations_at_once_round_like_one_after_the_other(operation: str, dtype: str) -> None:
    for size in (*SIZES, codes.BLOCK + 1):
        x, y, z = np.random.default_rng(size).normal(size=(3, size)).astype(dtype)
        found = run(dtype, codes.PW, block(operation, size), {X: x, Y: y, Z: z}, size)
        np.testing.assert_array_equal(found, TWO_AT_ONCE[operation](x, y, z))


@pytest.mark.parametrize("seed", range(8))
def test_blocks_of_any_layout(seed: int, dtype: str) -> None:
    """out = x (y + 2), with streams that are runs, that are broadcast, that lie across; and sums of it over some dimensions."""
    rng = np.random.default_rng(seed)
    sizes = [int(rng.choice([1, 2, 3, 5, 8, 17])) for _ in range(int(rng.integers(1, 5)))]
    size = math.prod(sizes)
    split, inner = len(sizes), 1
    while split and inner * sizes[split - 1] <= codes.BLOCK // 4:
        split -= 1
        inner *= sizes[split]
    split, inner = (split - 1, inner) if split else (0, inner // sizes[0])
    steps = max(1, min(sizes[split], codes.BLOCK // inner))
    dense = layout(rng, sizes)[0], [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    across = [stride * int(rng.integers(0, 2)) for stride in dense[0]]  # some dimensions are broadcast
    kept = [bool(rng.integers(0, 2)) for _ in sizes]
    into, sums = [0] * len(sizes), 1
    for i in reversed(range(len(sizes))):
        if kept[i]:
            into[i], sums = sums, sums * sizes[i]
    x, y = rng.normal(size=(2, size)).astype(dtype)
    streams = [[X, 0, 0, 0, *dense[1]], [Y, 0, 1, 1, *across], [OUT, 0, 2, 2, *dense[0]], [OUT, size, 3, 2, *into]]
    head = [len(sizes), split, steps, inner, 4, 2, 1, 1]
    operations = [[OP["ADD"], 4, 1, 3, 1], [OP["MUL"], 2, 0, 4, 0]]
    body = [head, sizes, *streams, [3, bits(2.0)], *operations, [OUT, size, sums, bits(0.5)]]
    found = run(dtype, codes.PW, body, {X: x, Y: y}, size + sums)
    expected = x * (y[offsets(sizes, across)] + np.dtype(dtype).type(2))
    np.testing.assert_array_equal(found[offsets(sizes, dense[0])], expected)
    total = np.zeros(sums)
    np.add.at(total, offsets(sizes, into), 0.5 * expected.astype(float))
    close(found[size:], total, size)


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
        factor = 0.25 if kind == codes.SUM else 1.0
        begins, ends = np.arange(outputs) * terms * run_, np.arange(outputs) * run_
        body = [[kind, OUT, 0, X, 0, outputs, run_, terms, 0, bits(factor)], begins, ends, np.arange(terms) * run_]
        expected = take(x.astype(float), axis=1) * factor
        close(run(dtype, codes.RED, body, {X: x}, outputs * run_), expected.ravel(), terms) if kind == codes.SUM else (
            np.testing.assert_array_equal(run(dtype, codes.RED, body, {X: x}, outputs * run_), expected.ravel())
        )
        if kind != codes.ARGMAX:  # along a run
            body = [[kind, OUT, 0, X, 0, outputs, 1, terms, run_, bits(factor)], begins, np.arange(outputs)]
            found = run(dtype, codes.RED, [*body, np.arange(terms) * run_], {X: x}, outputs)
            expected = take(x.astype(float), axis=(1, 2)) * factor
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


def test_differences_of_two_products_are_exact_opposites(dtype: str) -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 2, 33)).astype(dtype)
    head = [X, 0, Y, 0, OUT, 0, 1, 1, 1, 1, 1, 2, 33]
    one = run(dtype, codes.BMM, [head, [0], [0], [0], [0], [0, 33], [0], [0, 33], [0], [0]], {X: a, Y: b}, 33)
    swapped = np.stack([-b[1], b[0]])  # a0 b0 + a1 b1, and of the other token -(a0 b0 + a1 b1) in another order
    given = {X: np.stack([a[1], -a[0]]), Y: swapped}
    other = run(dtype, codes.BMM, [head, [0], [0], [0], [0], [0, 33], [0], [0, 33], [0], [0]], given, 33)
    np.testing.assert_array_equal(one, -other)


def test_gather_and_scatter(dtype: str) -> None:
    for seed, places in enumerate(SIZES):
        rng = np.random.default_rng(seed)
        symbols, features = int(rng.integers(1, 9)), int(rng.choice([1, 3, 16]))
        x, index = rng.normal(size=(symbols, features)).astype(dtype), rng.integers(0, symbols, places)
        tables = [
            np.arange(places),
            np.zeros(places),
            np.arange(places),
            np.arange(features),
            np.arange(features) * places,
        ]
        body = [[X, 0, Y, 0, OUT, 0, places, features, features], *tables]
        found = run(dtype, codes.GATHER, body, {X: x, Y: index.astype(dtype)}, places * features)
        np.testing.assert_array_equal(found, x[index].T.ravel())
        values = rng.normal(size=(features, places)).astype(dtype)
        size = symbols * features
        tables = [
            np.arange(places),
            np.zeros(places),
            np.arange(places),
            np.arange(features),
            np.arange(features) * places,
        ]
        body = [[OUT, 0, Y, 0, X, 0, size, 1, places, features, features], *tables]
        found = run(dtype, codes.SCATTER, body, {X: values, Y: index.astype(dtype)}, size)
        expected = np.zeros((symbols, features))
        np.add.at(expected, index, values.T.astype(float))
        close(found, expected.ravel(), places)


def test_masks_are_those_of_numpy(dtype: str) -> None:
    for seed, lanes in enumerate(SIZES):
        rng = np.random.default_rng(seed)
        rows, threshold, scale = int(rng.integers(1, 7)), int(rng.integers(1, 65536)), 1.25
        key, site, step = (
            rng.integers(0, 2**64, 2, np.uint64),
            int(rng.integers(-(2**63), 2**63)),
            int(rng.integers(0, 99)),
        )
        size = rows * lanes
        body = [
            [OUT, 0, site, threshold, bits(scale), size, rows, lanes, rows],
            np.arange(rows),
            np.arange(rows) * lanes,
        ]
        given = {codes.KEY: key, codes.STEP: np.array([step], np.uint64)}
        found = run(dtype, codes.MASK, body, given, size).reshape(rows, lanes)
        counter = np.array([0, 0, site % 2**64, step], np.uint64)
        draws = np.random.Philox(key=key, counter=counter).random_raw(-(-size // 4)).view(np.uint16)[:size]
        expected = np.where(draws >= threshold, scale, 0.0).reshape(lanes, rows).T
        np.testing.assert_array_equal(found, expected)
