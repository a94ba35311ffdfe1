"""Guards that leaving unused rows of the table of symbols alone changes no bit of a training, and no number of another."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from rankfall.design import Architecture, Component, Training
from rankfall.nets.network import Shape
from rankfall.streams import stream
from rankfall.train import recipe
from rankfall.train.members import Members
from rankfall.train.objectives._base import Samples

pytest.importorskip("numba")
from rankfall.train.fused.engine import Fused
from rankfall.train.fused.rows import spans_of

SYMBOLS, TOKENS, BATCH = 40, 6, 8
SHAPE = Shape("tokens", "classes", TOKENS, SYMBOLS, 3)
OPTIMIZERS = [
    (Component("adam"), 0.0),
    (Component("adam"), 0.1),
    (Component("adam", {"eps": 0.0}), 0.0),
    (Component("adamw"), 0.1),
    (Component("sgd", {"momentum": 0.9}), 0.0),
    (Component("sgd"), 0.1),
    (Component("sgd"), 0.0),  # whose velocity is zero where the last batch lacks a symbol
]


def made(fused: bool, optimizer: Component, decay: float, **own: Any) -> Members:
    a = Architecture(
        "a", embedding=Component("token", {"frozen": 0}), head=Component("classifier"), width=18, depth=1, heads=2
    )
    t = Training(
        "t",
        objective=Component("classes"),
        optimizer=optimizer,
        weight_decay=decay,
        epochs=1,
        batch=BATCH,
        lr=0.01,
        **own,
    )
    members = recipe.initial(a, SHAPE, [0, 1], [t, replace(t, lr=0.02)], torch.device("cpu"))
    members.grads.fill_(torch.nan)  # nothing of it is read before it is written
    if fused:
        members.engine = Fused(members, a, t)
    return members


def batch(step: int) -> Samples:
    """Symbols that no batch before had, some that the batch before had, in two of them the frozen one; 25 and more are never used."""
    rng = stream(step, "symbols")
    symbols = np.array([*([0] if step in (2, 5) else []), *range(3 * step + 1, 3 * step + 9)])
    inputs = torch.from_numpy(rng.choice(symbols, size=(2, BATCH, TOKENS)))
    return Samples(inputs, inputs % 3, [0, 1], ("train", 0), SYMBOLS)


def train(members: Members, steps: range) -> None:
    for step in steps:
        members.step(recipe.objective(Training("t", objective=Component("classes"))), batch(step))


def table_of(members: Members) -> torch.Tensor:
    return members.module.embedding.table.weight.detach()  # type: ignore[union-attr, return-value]


@pytest.mark.parametrize(("optimizer", "decay"), OPTIMIZERS, ids=str)
def test_a_network_that_goes_on_is_the_same_to_the_bit(optimizer: Component, decay: float) -> None:
    """Also the norm of the gradient, by which it is clipped, though other rows of zeros are summed after the restart."""
    own = {"clip": 0.05, "dropout": 0.1}
    whole, first = made(True, optimizer, decay, **own), made(True, optimizer, decay, **own)
    train(whole, range(6))
    train(first, range(3))
    again = made(True, optimizer, decay, **own)
    again.restore(first.state())
    train(again, range(3, 6))
    other = made(True, optimizer, decay, **own)  # which has gone elsewhere before
    train(other, range(5, 6))
    other.restore(first.state())
    train(other, range(3, 6))
    for name, value in whole.state().items():
        for same in (again, other):
            torch.testing.assert_close(same.state()[name], value, rtol=0.0, atol=0.0, equal_nan=True)


@pytest.mark.parametrize(("optimizer", "decay"), [one for one in OPTIMIZERS if one[0].options.get("eps") != 0], ids=str)
def test_rows_move_as_by_autograd(optimizer: Component, decay: float) -> None:
    """Those whose symbols are gone go on moving; those whose symbols have not come move by decay alone."""
    if optimizer.name != "sgd":
        optimizer = replace(optimizer, options={"eps": 1e-3})
    plain, fused = made(False, optimizer, decay), made(True, optimizer, decay)
    before = table_of(plain).clone()
    for members in (plain, fused):
        train(members, range(6))
    torch.testing.assert_close(fused.weights, plain.weights, rtol=2e-5, atol=2e-6)
    assert torch.equal(table_of(fused)[:, 25:], before[:, 25:]) == (decay == 0)
    assert not torch.equal(table_of(fused)[:, 1:25], before[:, 1:25])


def test_without_an_eps_rows_of_zeros_are_no_numbers_with_either_engine() -> None:
    """0 / (0 + 0)"""
    for fused in (False, True):
        members = made(fused, Component("adam", {"eps": 0.0}), 0.0)
        train(members, range(1))
        assert table_of(members)[:, 25:].isnan().all()


@pytest.fixture(scope="module")
def spans_from_python() -> Any:
    """Kernels cannot be called from Python, but for the step as a whole."""
    import numba

    return numba.njit(lambda used, first, width, count, spans: spans_of(used, first, width, count, spans))


@pytest.mark.parametrize("used", ["", "0", "1", "0110", "1001", "10111", "0001", "1111"])
@pytest.mark.parametrize(("first", "behind"), [(0, 0), (3, 0), (0, 4), (3, 4)])
def test_spans_are_what_is_used_and_all_around_the_table(
    used: str, first: int, behind: int, spans_from_python: Any
) -> None:
    width, rows = 2, np.array([int(one) for one in used], np.uint8)
    count, spans = first + width * len(rows) + behind, np.zeros((len(rows) // 2 + 2, 2), np.int64)
    wanted = [*[True] * first, *np.repeat(rows, width).astype(bool), *[True] * behind]
    found, last = np.zeros(count, bool), -1
    for a, z in spans[: spans_from_python(rows, first, width, count, spans)]:
        assert last < a < z  # apart, or they would be one
        found[a:z], last = True, z
    assert found.tolist() == wanted
