"""The machine on a GPU computes autograd's steps: what `test_engine.py` asks of the machine on a processor, asked of its kernels, which are
compiled for a processor here. `benchmarks/gpu.sh` asks it of a GPU.
"""

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("numba")
from emulated import Backwards, Emulated, emulate
from waiting import as_on_a_gpu, watched

from rankfall.design import Component
from rankfall.errors import RankfallError
from rankfall.train import recipe

SPEC = importlib.util.spec_from_file_location("asked_of_the_machine", Path(__file__).with_name("test_engine.py"))
assert SPEC is not None and SPEC.loader is not None
asked: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(asked)
own_components = asked.own_components
QUICK = {("normaliser", "softmax"), ("attention", "delta"), ("norm", "column"), ("position", "rope")}


@pytest.fixture(autouse=True)
def on_a_gpu(monkeypatch: pytest.MonkeyPatch, own_components: None) -> None:
    emulate(monkeypatch)
    monkeypatch.setattr(asked, "Machined", Emulated)


def components() -> list[Any]:
    every = [tuple(case.values) for case in asked.every_component()]
    return [pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow) for case in every]


@pytest.mark.parametrize(("kind", "name"), components())
def test_gradients_are_autograds_for_every_component(kind: str, name: str) -> None:
    asked.test_gradients_are_autograds_for_every_component(kind, name)


# The same tests as of the machine on a processor, with their cases.
test_gradients_are_autograds_in_other_networks = pytest.mark.slow(asked.test_gradients_are_autograds_in_other_networks)
test_what_an_objective_draws = pytest.mark.slow(asked.test_what_an_objective_draws_is_the_plain_engines_at_every_step)
test_gradients_are_autograds_for_vectors_and_values = asked.test_gradients_are_autograds_for_vectors_and_values
test_a_resumed_training_is_the_same_bits = asked.test_a_resumed_training_is_the_same_bits
test_a_member_that_diverges_stops_alone = (
    asked.test_a_member_that_diverges_stops_alone_and_one_that_has_stopped_takes_no_step
)


@pytest.mark.slow
def test_gradients_are_autograds_in_random_networks() -> None:
    for architecture, shape, samples in asked.random_networks(20, 7):
        asked.check(architecture, shape=shape, bound=1e-9, amplifies=True, samples=samples)


@pytest.mark.parametrize(
    "name", ["adam", *(pytest.param(one, marks=pytest.mark.slow) for one in ("adamw", "sgd", "muon"))]
)
def test_training_is_the_plain_engines(name: str) -> None:
    asked.test_training_is_the_plain_engines(name)


def test_the_order_in_which_threads_run_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread reads what another one writes without a barrier between them."""
    forwards = asked.trained((0, 1))
    monkeypatch.setattr(asked, "Machined", Backwards)
    assert torch.equal(forwards.weights, asked.trained((0, 1)).weights)


def test_members_are_the_same_bits_alone() -> None:
    together = asked.trained((0, 1, 2))
    for k in range(3):
        assert torch.equal(together.weights[k], asked.trained((k,)).weights[0])


def test_a_symbol_that_is_none_ends_training_where_it_is_graded() -> None:
    members = asked.members_of(asked.L2, asked.TRAINING)
    batch, objective = asked.batch_of(members), recipe.objective(asked.TRAINING)
    members.step(objective, batch)
    members.grade(objective, batch)
    members.step(objective, replace(batch, inputs=batch.inputs + 5))
    with pytest.raises(RankfallError, match="outside of its table"):
        members.grade(objective, batch)


def test_further_layers_have_the_same_kernel() -> None:
    texts = []
    for depth in (3, 5):
        members = asked.members_of(asked.network(depth=depth, mlp="none"), asked.TRAINING)
        members.step(recipe.objective(asked.TRAINING), asked.batch_of(members))
        ((kernel, _),) = members.engine.engine.kernels.values()
        texts.append(kernel.text)
    assert texts[0] == texts[1]


def test_a_step_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    as_on_a_gpu(monkeypatch)
    training = replace(asked.TRAINING, optimizer=Component("adamw"), weight_decay=0.1, clip=0.5)
    members = asked.members_of(asked.L2, training)
    objective, batches = recipe.objective(training), [asked.batch_of(members, draw=draw) for draw in range(3)]
    members.step(objective, batches[0])
    waits: list[str] = []
    with watched(waits.append):
        for batch in batches[1:]:
            members.step(objective, batch)
    assert not waits
