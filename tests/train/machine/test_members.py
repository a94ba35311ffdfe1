"""What is computed of one member does not depend on who is computed beside it, on which thread, or on what they hold."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from rankfall.train.machine import codes
from rankfall.train.machine.codes import OP
from rankfall.train.machine.runtime import Machine, room

MEMBERS, WEIGHTS, SAMPLES = 5, 24, 37


def buffers(dtype: str) -> dict[int, np.ndarray]:
    rng = np.random.default_rng(0)
    sizes = {codes.PARAM: WEIGHTS * WEIGHTS, codes.GRAD: WEIGHTS * WEIGHTS, codes.OUT: 1, codes.NORM: 1}
    held = {
        buffer: room(MEMBERS * size, dtype)[: MEMBERS * size].reshape(MEMBERS, size) for buffer, size in sizes.items()
    }
    held[codes.PARAM][:] = rng.normal(size=held[codes.PARAM].shape)
    held[codes.INPUT] = room(WEIGHTS * SAMPLES, dtype)
    held[codes.INPUT][: WEIGHTS * SAMPLES] = rng.normal(size=WEIGHTS * SAMPLES)
    return held


def gradient() -> tuple[np.ndarray, int]:
    """y = W^T x, GRAD = tanh(y) x^T, OUT = the sum of y: three instructions."""
    size = WEIGHTS * SAMPLES
    rows, columns = np.arange(WEIGHTS) * SAMPLES, np.arange(WEIGHTS)
    head = [codes.INPUT, 0, codes.PARAM, 0, codes.ARENA, 0, 0, 0, 0, WEIGHTS, WEIGHTS, 1, SAMPLES]
    linear = [*head, *rows, *(columns * WEIGHTS), *columns, *rows, *columns, 0, 0, 0]
    steps = codes.BLOCK if size > codes.BLOCK else size
    tanh = [1, 0, steps, 1, 2, 1, 0, 1, size, codes.ARENA, 0, 0, 0, 1, codes.OUT, 0, 3, 0, 0]
    tanh += [OP["TANH"], 0, 0, 0, 0, codes.OUT, 0, 1, np.float64(1).view(np.int64)]
    weights = [codes.ARENA, 0, codes.INPUT, 0, codes.GRAD, 0, WEIGHTS, WEIGHTS, 1, SAMPLES]
    weights += [*rows, *rows, *(columns * WEIGHTS), 0, 0]
    kinds = ((codes.LIN, linear), (codes.PW, tanh), (codes.WGRAD, weights))
    return np.concatenate([[kind, len(body) + 2, *body] for kind, body in kinds]).astype(np.int64), 3


def descent() -> tuple[np.ndarray, int]:
    """PARAM = PARAM - GRAD / NORM"""
    size = WEIGHTS * WEIGHTS
    body = [
        1,
        0,
        codes.BLOCK,
        1,
        3,
        2,
        0,
        0,
        size,
        codes.PARAM,
        0,
        0,
        0,
        1,
        codes.GRAD,
        0,
        0,
        1,
        1,
        codes.NORM,
        0,
        1,
        2,
        0,
    ]
    body += [OP["DIV"], 3, 1, 2, 1, OP["SUB"], 0, 0, 3, 0]
    return np.array([codes.PW, len(body) + 2, *body], np.int64), 1


def step(
    dtype: str, shares: list[tuple[int, int]], poisoned: int | None = None
) -> tuple[dict[int, np.ndarray], np.ndarray]:
    """All members' steps, each share of them on a thread and a machine of its own."""
    held, alive = buffers(dtype), np.ones(MEMBERS, np.int64)
    if poisoned is not None:
        held[codes.PARAM][poisoned, 3] = np.nan
    strides = np.zeros(codes.BUFFERS, np.int64)
    for buffer in (codes.PARAM, codes.GRAD, codes.OUT, codes.NORM):
        strides[buffer] = held[buffer].strides[0]

    def take(share: tuple[int, int]) -> None:
        bases, arena = np.zeros(codes.BUFFERS, np.int64), room(WEIGHTS * SAMPLES, dtype)
        for buffer, values in (held | {codes.ARENA: arena}).items():
            bases[buffer] = values.ctypes.data
        Machine(dtype).step(*gradient(), *descent(), bases, strides, *share, WEIGHTS * WEIGHTS, alive)

    with ThreadPoolExecutor(len(shares)) as pool:
        list(pool.map(take, shares))
    return held, alive


@pytest.fixture(params=["float32", "float64"])
def dtype(request: Any) -> str:
    return str(request.param)


def test_a_step_is_what_it_says(dtype: str) -> None:
    held, alive = step(dtype, [(0, MEMBERS)])
    given = buffers(dtype)
    x = given[codes.INPUT][: WEIGHTS * SAMPLES].reshape(WEIGHTS, SAMPLES).astype(float)
    for member in range(MEMBERS):
        w = given[codes.PARAM][member].reshape(WEIGHTS, WEIGHTS).astype(float)
        y = np.tanh(w.T @ x)
        expected = y @ x.T
        eps = 50 * np.finfo(dtype).eps
        np.testing.assert_allclose(
            held[codes.GRAD][member], expected.ravel(), rtol=0, atol=eps * np.abs(expected).max()
        )
        np.testing.assert_allclose(held[codes.OUT][member], y.sum(), rtol=0, atol=eps * SAMPLES)
        norm = np.linalg.norm(expected)
        np.testing.assert_allclose(held[codes.NORM][member], norm, rtol=eps)
        np.testing.assert_allclose(held[codes.PARAM][member], (w - expected / norm).ravel(), rtol=0, atol=eps)
    assert alive.all()


@pytest.mark.parametrize("shares", [[(0, 2), (2, 5)], [(member, member + 1) for member in range(MEMBERS)]])
def test_shares_and_threads_change_no_bit(shares: list[tuple[int, int]], dtype: str) -> None:
    together, _ = step(dtype, [(0, MEMBERS)])
    apart, _ = step(dtype, shares)
    for buffer, values in together.items():
        np.testing.assert_array_equal(apart[buffer], values)


def test_what_is_not_a_number_harms_no_other_member(dtype: str) -> None:
    sound, _ = step(dtype, [(0, MEMBERS)])
    held, alive = step(dtype, [(0, MEMBERS)], poisoned=2)
    assert alive.tolist() == [1, 1, 0, 1, 1]
    others = [0, 1, 3, 4]
    for buffer in (codes.PARAM, codes.GRAD, codes.OUT, codes.NORM):
        np.testing.assert_array_equal(held[buffer][others], sound[buffer][others])
    np.testing.assert_array_equal(
        held[codes.PARAM][2], [*buffers(dtype)[codes.PARAM][2][:3], np.nan, *buffers(dtype)[codes.PARAM][2][4:]]
    )
