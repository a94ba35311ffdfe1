"""Guards that the fused engine computes the plain engine's steps: gradients over random networks, optimisers, fates, independence.

Bounds: against float64 a gradient is no farther away than four times torch's own float32, or 2e-6 of its norm where that is more. Some
networks amplify rounding (a norm of a token whose two or three features nearly agree, in several layers): there one rounding is no
measure of the next, and the bound is four times the farthest of torch's and of eight steps that are rounded at random.
"""

import hashlib
import math
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankfall.design import Architecture, Component, Training
from rankfall.nets.network import Shape
from rankfall.run.keys.fingerprint import Sources
from rankfall.run.plan.engines import CHECKED, REPEATED, code_of, digest_of
from rankfall.streams import stream
from rankfall.tasks._dataset import Split
from rankfall.tasks.sorting import sorting
from rankfall.train import recipe
from rankfall.train.data import Data
from rankfall.train.fit import fit
from rankfall.train.history import TrainingHistory
from rankfall.train.members import DIVERGED, RUNNING, STOPPED, Members
from rankfall.train.objectives._base import Graded, Samples

pytest.importorskip("numba")
from rankfall.train.exact_zeros import remainder
from rankfall.train.fused import cache
from rankfall.train.fused.engine import Fused

CPU = torch.device("cpu")
TOKENS = {"embedding": Component("token"), "head": Component("classifier")}
VECTORS = {"embedding": Component("coordinates"), "head": Component("regression"), "position": Component("none")}
CLASSES = {"objective": Component("classes"), "epochs": 3}
EXACT = {**CLASSES, "optimizer": Component("sgd"), "lr": 1e-3}  # the step is the gradient


def shape_of(architecture: dict[str, Any], training: dict[str, Any], length: int) -> Shape:
    if architecture["head"].name == "regression":
        return Shape("vectors", "values", length, 2, 3)
    if training["objective"].name == "masked_tokens":
        return Shape("tokens", "hidden", length, 7, 7)
    return Shape("tokens", "classes", length, 7, 6)


def made(
    engine: str, architecture: dict[str, Any], training: dict[str, Any], shape: Shape, seeds: list[int]
) -> Members:
    """Members whose weights, also those that start at zero, are random."""
    a, t = Architecture("a", **architecture), Training("t", **training)
    t = replace(t, dtype="float64") if engine == "double" else t
    members = recipe.initial(a, shape, seeds, [t] * len(seeds), CPU)
    for row, seed in zip(members.weights, seeds):
        row += torch.from_numpy(stream(seed, "noise").normal(0, 0.1, row.shape)).to(row.dtype)
    if engine == "fused":
        members.engine = Fused(members, a, t)
    return members


def batch_of(members: Members, shape: Shape, batch: int, tokens: int, constant: int | None = None) -> Samples:
    rng, count, dtype = np.random.default_rng(5), len(members), members.weights.dtype
    if shape.targets == "hidden":
        text = torch.from_numpy(rng.integers(shape.size_in, size=(count, batch, tokens)))
        return Samples(text, text, members.seeds, ("train", 0), shape.size_in, special=3)
    if shape.inputs == "tokens":
        inputs = torch.from_numpy(rng.integers(shape.size_in, size=(count, batch, tokens)))
        targets = torch.from_numpy(rng.integers(shape.size_out, size=(count, batch, tokens)))
        targets[:, 1:][torch.from_numpy(rng.random(targets[:, 1:].shape) < 0.2)] = -1  # not all are asked
    else:
        inputs = torch.from_numpy(rng.normal(size=(count, batch, tokens, shape.size_in))).to(dtype)
        targets = torch.from_numpy(rng.normal(size=(count, batch, tokens, shape.size_out))).to(dtype)
    return Samples(inputs, targets, members.seeds, ("train", 0), shape.size_in, constant=constant)


def stepped(
    engine: str, architecture: dict[str, Any], training: dict[str, Any], *, count: int = 2, steps: int = 1, **batch: Any
) -> tuple[Members, Graded]:
    shape = shape_of(architecture, training, batch["tokens"])
    members = made(engine, architecture, training, shape, list(range(count)))
    objective = recipe.objective(Training("t", **training))
    samples = batch_of(members, shape, **batch)
    for _ in range(steps):
        graded = members.step(objective, samples)
    return members, graded


def rounded_at_random(seed: int, architecture: dict[str, Any], training: dict[str, Any], **batch: Any) -> torch.Tensor:
    """The gradients of a step in float64 when weights, what every module makes and its gradient are off by up to half a last bit of
    float32: how far apart they lie is the network's own doing, whoever computes it."""
    rng = np.random.default_rng(seed)

    def off(x: torch.Tensor) -> torch.Tensor:
        return x * (1 + 2.0**-24 * torch.from_numpy(rng.uniform(-1, 1, x.shape)))

    def after(module: torch.nn.Module, inputs: Any, made: torch.Tensor) -> torch.Tensor:
        made = off(made)
        if made.requires_grad:
            made.register_hook(off)
        return made

    shape = shape_of(architecture, training, batch["tokens"])
    members = made("double", architecture, training, shape, list(range(batch.pop("count", 2))))
    members.weights.copy_(off(members.weights))
    for module in members.module.modules():
        if not list(module.children()):
            module.register_forward_hook(after)
    members.step(recipe.objective(Training("t", **training)), batch_of(members, shape, **batch))
    return members.grads


def compare(architecture: dict[str, Any], training: dict[str, Any], **batch: Any) -> None:
    """One step of plain gradient descent, in float64, in float32 and fused."""
    double, plain, fused = (stepped(engine, architecture, training, **batch) for engine in ("double", "plain", "fused"))
    exact = double[0].grads
    off = [float((found[0].grads - exact).norm() / exact.norm()) for found in (plain, fused)]
    if off[1] > max(4 * off[0], 2e-6):
        rounded = [rounded_at_random(seed, architecture, training, **batch) for seed in range(8)]
        assert off[1] <= 4 * max(float((one - exact).norm() / exact.norm()) for one in rounded)
    torch.testing.assert_close(fused[1].loss.double(), double[1].loss, rtol=2e-6, atol=1e-7)
    torch.testing.assert_close(fused[0].weights, plain[0].weights, rtol=1e-5, atol=1e-6)
    assert torch.equal(fused[1].asked, plain[1].asked)
    assert {name: found.tolist() for name, found in fused[1].sums.items()} == {
        name: found.tolist() for name, found in plain[1].sums.items()
    }
    assert {name: found.tolist() for name, found in fused[1].asked_of.items()} == {
        name: found.tolist() for name, found in plain[1].asked_of.items()
    }


EDGES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "one member, one token, one layer": ({**TOKENS, "depth": 1, "width": 4}, {}, {"count": 1, "batch": 4, "tokens": 1}),
    "published": (
        {
            "embedding": Component("token", {"frozen": 0}),
            "head": Component("classifier"),
            "position": Component("learned", {"mapped": True}),
            "width": 48,
            "depth": 2,
        },
        {"dropout": 0.1},
        {"batch": 30, "tokens": 8, "constant": 0},
    ),
    "a width that fills no vector": ({**TOKENS, "width": 250, "depth": 1}, {"dropout": 0.1}, {"batch": 5, "tokens": 3}),
    "half a vector, and rows of 4,096 bytes": (
        {**TOKENS, "width": 12, "depth": 2},
        {"dropout": 0.1},
        {"batch": 8, "tokens": 128},
    ),
    "more than a vector, and one left over": ({**VECTORS, "width": 12, "depth": 3}, {}, {"batch": 33, "tokens": 4}),
    "a learned bias and a mask": (
        {**TOKENS, "width": 16, "depth": 2, "position": Component("toeplitz"), "mask": Component("causal")},
        {"dropout": 0.3},
        {"batch": 9, "tokens": 5},
    ),
    "rotated heads of odd width": (
        {**TOKENS, "width": 10, "heads": 2, "head_width": 5, "depth": 2, "position": Component("rope", {"log_n": 3})},
        {"dropout": 0.1},
        {"batch": 17, "tokens": 6},
    ),
    "masked tokens, of which fewer classes than a vector holds": (
        {**TOKENS, "width": 10, "depth": 2, "position": Component("rope"), "mlp": Component("gelu")},
        {"objective": Component("masked_tokens"), "dropout": 0.1},
        {"batch": 17, "tokens": 6},
    ),
    "masked tokens before whose head a norm comes": (
        {**TOKENS, "width": 12, "depth": 1, "norm_placement": "pre"},
        {"objective": Component("masked_tokens", {"rate": 1.0, "random": 0.2})},
        {"batch": 5, "tokens": 7},
    ),
    "wider than the cache": (
        {**TOKENS, "width": 272, "heads": 2, "depth": 1, "mlp": Component("relu")},
        {"dropout": 0.1},
        {"count": 1, "batch": 8, "tokens": 40},
    ),
    "sums over many tokens": ({**TOKENS, "width": 12, "depth": 1}, {}, {"count": 1, "batch": 40, "tokens": 128}),
    "narrow heads of their own": (
        {**TOKENS, "width": 10, "heads": 3, "head_width": 1, "depth": 2},
        {},
        {"batch": 6, "tokens": 4},
    ),
}


def test_a_network_that_amplifies_rounding() -> None:
    """Token 6 of sequence 22 has features that nearly agree, and each of five norms makes its rounding two to three times as large. The
    fused gradients are 12 times as far from float64 as torch's, which fall near the least of the random ones by chance (0.2 to 4e-6)."""
    architecture = {
        "embedding": Component("linear"),
        "head": Component("regression"),
        "width": 3,
        "depth": 2,
        "heads": 1,
        "head_width": 7,
        "mlp": Component("gelu"),
        "mlp_width": 17,
        "mask": Component("local", {"window": 1}),
        "position": Component("alibi"),
        "norm": Component("layer", {"eps": 0.1}),
    }
    compare(architecture, {**EXACT, "objective": Component("values"), "dropout": 0.5}, batch=30, tokens=7)


@pytest.mark.parametrize("name", EDGES)
def test_a_step_is_the_plain_one(name: str) -> None:
    architecture, training, batch = EDGES[name]
    compare(architecture, {**EXACT, "objective": objective_of(architecture), **training}, **batch)


@pytest.mark.parametrize("rows", [1, 3])
def test_logits_are_made_a_part_of_the_places_at_a_time(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last part may be smaller. Of a sample with too few words some places have no answer."""
    monkeypatch.setattr("rankfall.train.fused.form.MOST", 1)
    monkeypatch.setattr("rankfall.train.fused.form.LEAST", rows)
    compare(
        {**TOKENS, "width": 8, "depth": 1},
        {**EXACT, "objective": Component("masked_tokens", {"rate": 0.7})},
        batch=4,
        tokens=5,
    )


@pytest.mark.parametrize("samples", [3, 32, 70])
@pytest.mark.parametrize("name", EDGES)
def test_samples_are_evaluated_as_by_the_plain_engine(name: str, samples: int) -> None:
    """Without dropout, in any number, also for members that have stopped or diverged, of whom nothing is changed."""
    architecture, training, batch = EDGES[name]
    training = {**EXACT, "objective": objective_of(architecture), **training}
    shape = shape_of(architecture, training, batch["tokens"])
    members = made("fused", architecture, training, shape, [0, 1, 2])
    members.fate[1], members.fate[2] = STOPPED, DIVERGED
    before = {key: value.clone() for key, value in members.state().items()}
    given = batch_of(members, shape, samples, batch["tokens"], batch.get("constant"))
    if shape.targets == "classes":
        given.targets[:, :2] = -1  # nothing is asked of some
        if samples == 70:
            given.targets[:, 32:64] = -1  # nor of any that are computed at once
    objective = recipe.objective(Training("t", **training))
    fused, plain = members.grade(objective, given), objective(members.module, given)
    torch.testing.assert_close(fused.loss, plain.loss.detach(), rtol=2e-6, atol=1e-7)
    assert torch.equal(fused.asked, plain.asked) and fused.sums.keys() == plain.sums.keys()
    for name, value in {**plain.sums, **plain.asked_of}.items():
        assert {**fused.sums, **fused.asked_of}[name].tolist() == value.tolist()
    assert all(torch.equal(value, before[key]) for key, value in members.state().items())


def test_what_was_transposed_before_does_not_matter() -> None:
    """Rows are filled up to whole vectors with whatever lies there, such as the gradient of a network that diverged."""
    architecture, own, batch = EDGES["half a vector, and rows of 4,096 bytes"]
    training = {**EXACT, **own}
    shape = shape_of(architecture, training, batch["tokens"])
    found = []
    for left in (0.0, math.nan):
        members = made("fused", architecture, training, shape, [0, 1])
        engine: Any = members.engine
        for _ in range(2):
            for _, work in (pair for rooms in engine.rooms.values() for pair in rooms):
                work.transposed.fill(left)
            members.step(recipe.objective(Training("t", **training)), batch_of(members, shape, **batch))
        found.append(members.weights)
    assert torch.equal(*found) and bool(found[0].isfinite().all())


def test_where_nothing_is_asked_the_loss_is_no_number() -> None:
    members = made("fused", {**TOKENS, "width": 4, "depth": 1}, EXACT, Shape("tokens", "classes", 2, 7, 6), [0])
    given = batch_of(members, Shape("tokens", "classes", 2, 7, 6), 5, 2)
    given.targets[:] = -1
    found = members.grade(recipe.objective(Training("t", **EXACT)), given)
    assert found.loss.isnan().all() and found.asked.tolist() == [0] and found.sums["accuracy"].tolist() == [0]


def test_a_member_is_evaluated_to_the_bit_in_any_stack() -> None:
    alone = trained("fused", [7])[1].tensors
    among = trained("fused", [1, 2, 7, 3])[1].tensors
    assert "test.loss" in alone
    assert all(torch.equal(among[name][2:3], value) for name, value in alone.items())


def objective_of(architecture: dict[str, Any]) -> Component:
    return Component("values" if architecture["head"].name == "regression" else "classes")


def component(name: str, **options: Any) -> st.SearchStrategy[Component]:
    return st.builds(Component, st.just(name), st.fixed_dictionaries({k: st.just(v) for k, v in options.items()}))


RESIDUALS = st.one_of(*map(component, ("add", "none", "depth_scaled", "convex")), component("scaled", scale=0.3))
POSITIONS = st.one_of(
    *map(component, ("none", "learned", "sinusoidal", "toeplitz", "symmetric", "t5", "alibi")),
    component("learned", mapped=True),
    component("rope"),
    component("rope", base=10.0, log_n=16),
)
MASKS = st.one_of(component("none"), component("causal"), component("local", window=1))
NETWORKS = st.fixed_dictionaries(
    {
        "depth": st.integers(1, 3),
        "heads": st.integers(1, 3),
        "head_width": st.integers(1, 9),
        "width": st.integers(2, 20),
        "mlp_width": st.integers(1, 17),
        "residual": RESIDUALS,
        "mlp_residual": RESIDUALS,
        "position": POSITIONS,
        "mask": MASKS,
        "mlp": st.one_of(*map(component, ("none", "gelu", "relu"))),
        "norm": st.one_of(component("layer"), component("layer", eps=1e-3), component("none")),
        "norm_placement": st.sampled_from(["post", "pre"]),
    }
)
INPUTS = st.sampled_from(
    [
        (Component("token"), Component("classifier"), Component("classes")),
        (Component("token", {"frozen": 2}), Component("classifier"), Component("classes")),
        (Component("mapped_token"), Component("classifier"), Component("classes")),
        (Component("linear"), Component("regression"), Component("values")),
        (Component("coordinates"), Component("regression"), Component("values")),
        (Component("token"), Component("classifier"), Component("masked_tokens")),
        (Component("mapped_token"), Component("classifier"), Component("masked_tokens", {"rate": 0.6, "hidden": 0.3})),
    ]
)


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(NETWORKS, INPUTS, st.sampled_from([0.0, 0.1, 0.5]), st.integers(4, 20), st.integers(1, 7))
def test_any_network_that_is_served(
    network: dict[str, Any], ends: tuple[Component, Component, Component], dropout: float, batch: int, tokens: int
) -> None:
    check_any(network, ends, dropout, batch, tokens)


@pytest.mark.slow
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(NETWORKS, INPUTS, st.sampled_from([0.0, 0.1, 0.5]), st.integers(4, 70), st.integers(1, 20))
def test_many_networks_that_are_served(
    network: dict[str, Any], ends: tuple[Component, Component, Component], dropout: float, batch: int, tokens: int
) -> None:
    check_any(network, ends, dropout, batch, tokens)


def check_any(
    network: dict[str, Any], ends: tuple[Component, Component, Component], dropout: float, batch: int, tokens: int
) -> None:
    architecture = {**network, "embedding": ends[0], "head": ends[1]}
    if network["norm"].name == "none" or network["width"] < 6:
        # Few features, or none whose variance may vanish: a norm with so small an eps divides by almost nothing.
        architecture["norm"] = Component("none") if network["norm"].name == "none" else Component("layer", {"eps": 0.1})
    compare(architecture, {**EXACT, "objective": ends[2], "dropout": dropout}, batch=batch, tokens=tokens)
    check_no_remainder(architecture, {"objective": ends[2], "dropout": dropout}, batch, tokens)


def check_no_remainder(architecture: dict[str, Any], training: dict[str, Any], batch: int, tokens: int) -> None:
    """Data that are symmetric in nothing end no job (`exact_zeros.py`)."""
    a, t, shape = Architecture("a", **architecture), Training("t", **training), shape_of(architecture, training, tokens)
    members = recipe.initial(a, shape, [batch], [t], CPU)
    assert remainder(a, shape, t, batch_of(members, shape, batch, tokens)) is None


@pytest.mark.parametrize("clip", [None, 1e-3, 0.5])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize(
    "optimizer",
    [Component("adam", {"eps": 1e-3}), Component("adamw", {"eps": 1e-3, "beta1": 0.8, "beta2": 0.9}),
     Component("sgd"), Component("sgd", {"momentum": 0.9})],
    ids=str,
)  # fmt: skip
def test_optimisers(optimizer: Component, decay: float, clip: float | None) -> None:
    """Four steps. An eps of 1e-3, since Adam with a small one turns the rounding of a gradient that is zero into a whole step."""
    training = {**CLASSES, "optimizer": optimizer, "weight_decay": decay, "clip": clip, "lr": 0.01, "dropout": 0.1}
    architecture = {**TOKENS, "width": 8, "depth": 2}
    plain, fused = (
        stepped(engine, architecture, training, steps=4, batch=6, tokens=4)[0] for engine in ("plain", "fused")
    )
    torch.testing.assert_close(fused.weights, plain.weights, rtol=2e-5, atol=2e-6)
    assert fused.step_count == plain.step_count == 4 and torch.equal(fused.last_step, plain.last_step)


def trained(
    engine: str,
    seeds: list[int],
    epochs: int = 4,
    rates: dict[int, float] | None = None,
    state: Any = None,
    objective: str = "classes",
    **own: Any,
) -> tuple[Members, TrainingHistory, dict[int, Any]]:
    """Members trained on sorting, or to find hidden symbols, and their state after each step; members are told learning rates by seed."""
    a = Architecture("a", **TOKENS, width=16, depth=2)
    t = Training("t", objective=Component(objective), epochs=epochs, batch=10, lr=3e-3, dropout=0.1, **own)
    trainings = [replace(t, lr=(rates or {}).get(seed, t.lr)) for seed in seeds]
    members = recipe.initial(a, Shape("tokens", "classes", 5, 6, 6), seeds, trainings, CPU)
    if engine == "fused":
        members.engine = Fused(members, a, t)
    datasets = [sorting(stream(s, "data"), train=64, test=32, length=5, symbols=6) for s in seeds]
    if objective == "masked_tokens":
        datasets = [
            replace(one, splits={name: Split(x.inputs, x.inputs) for name, x in one.splits.items()}, special=2)
            for one in datasets
        ]
    data = Data.of(datasets, torch.float32, CPU)
    history, kept = TrainingHistory(len(seeds), epochs, CPU), {}
    if state is not None:
        members.restore(state[0])
        history.restore(state[1])

    def keep() -> None:
        copies = (
            {k: v.clone() for k, v in members.state().items()},
            {k: v.clone() for k, v in history.tensors.items()},
        )
        kept[members.step_count] = copies

    fit(members, data, recipe.objective(t), recipe.course(t), history, keep)
    return members, history, kept


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


OBJECTIVES = pytest.mark.parametrize("objective", ["classes", "masked_tokens"])


@OBJECTIVES
@pytest.mark.parametrize("meeting", [0.0, 1e9])
def test_a_member_is_the_same_to_the_bit_in_any_stack_and_with_any_number_of_threads(
    objective: str, meeting: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of five members on two threads the one in the middle changes threads from step to step, or in the middle of several."""
    monkeypatch.setattr("rankfall.train.fused.shares.MEETING", meeting)
    alone = trained("fused", [7], objective=objective)[0].weights[0]
    one, history, _ = trained("fused", [1, 2, 7, 3, 4], objective=objective)
    with threads(2):
        two, same, kept = trained("fused", [1, 2, 7, 3, 4], objective=objective)
    assert torch.equal(one.weights[2], alone) and torch.equal(two.weights, one.weights)
    assert all(torch.equal(value, same.tensors[name]) for name, value in history.tensors.items())
    pairs = [2, 4, 6, 7, *range(9, 15, 2), 14, *range(16, 22, 2), 21, *range(23, 28, 2), 28]
    assert list(kept) == ([7, 14, 21, 28] if meeting else pairs)


@OBJECTIVES
def test_training_goes_on_to_the_bit_from_any_step(objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is hidden in a step follows from seed and step."""
    monkeypatch.setattr("rankfall.train.fused.shares.MEETING", 0.0)
    whole, history, kept = trained("fused", [3, 4], objective=objective)
    for step in (1, 7, 9):
        again, other, _ = trained("fused", [3, 4], state=kept[step], objective=objective)
        assert torch.equal(again.weights, whole.weights)
        assert all(torch.equal(value, other.tensors[name]) for name, value in history.tensors.items())


@OBJECTIVES
def test_a_whole_training_is_the_plain_one(objective: str) -> None:
    """28 steps of Adam: losses within 1e-4."""
    plain, fused = (trained(engine, [0, 1, 2], objective=objective) for engine in ("plain", "fused"))
    for epoch, split in product(range(4), ("train", "test")):
        of_epoch = [found[1].mean(split, "loss", epoch) for found in (plain, fused)]
        torch.testing.assert_close(*of_epoch, rtol=1e-4, atol=0.0)


def test_members_diverge_and_stop_as_with_the_plain_engine() -> None:
    """One goes on, one diverges, and all that reach a loss stop; the record of an epoch is the same."""
    for own in ({}, {"stop_loss": 1.79}):
        rates = {1: 3e18}
        plain, fused = (
            trained(engine, [0, 1, 2], rates=rates, optimizer=Component("sgd"), **own) for engine in ("plain", "fused")
        )
        with threads(2):
            shared = trained("fused", [0, 1, 2], rates=rates, optimizer=Component("sgd"), **own)
        assert all(torch.equal(value, shared[0].state()[name]) for name, value in fused[0].state().items())
        assert fused[0].fate.tolist() == plain[0].fate.tolist()
        assert fused[0].fate[1] == DIVERGED and (fused[0].fate[0] == (STOPPED if own else RUNNING))
        assert fused[0].last_step.tolist() == plain[0].last_step.tolist()
        for name, value in plain[1].tensors.items():
            torch.testing.assert_close(fused[1].tensors[name][[0, 2]], value[[0, 2]], rtol=1e-4, atol=1e-6)
            assert torch.equal(fused[1].tensors[name].isfinite(), value.isfinite())


def test_the_engine_was_checked_with_these_components() -> None:
    """An edited component is computed by the plain engine until someone has looked whether the fused one still agrees."""
    found = {kind: {name: code_of(kind, name, Sources()) for name in known} for kind, known in CHECKED.items()}
    around = {module: digest_of(module, Sources()) for module in REPEATED}
    assert (found, around) == (CHECKED, REPEATED), (
        "run tests/train/fused, mend the kernels if they disagree, then note these digests in run/plan/engines.py"
    )


def test_machine_code_is_kept_under_the_text_that_it_was_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    before, text = cache.digest(), cache.text_of
    name = "rankfall.train.fused.norm"
    monkeypatch.setattr(cache, "text_of", lambda one: text(one) + b"#" * (one == name))
    assert cache.digest() != before
    monkeypatch.setattr(cache, "text_of", text)
    assert cache.digest() == before


@pytest.mark.slow
@pytest.mark.parametrize("writable", [True, False])
def test_the_first_process_runs_the_machine_code_that_all_others_run(tmp_path: Path, writable: bool) -> None:
    """A process that compiles for itself finds functions as they were compiled alone, and sums in another order. The weights of every
    process are those of one that has read the cache, also where it can keep none.
    """
    train = (
        "import hashlib, test_engine as t; members = t.trained('fused', [7])[0]; "
        "print(hashlib.sha256(members.weights.numpy().tobytes()).hexdigest())"
    )
    home = tmp_path / "cache"
    if not writable:
        home.write_text("a file, in which no folder can be made")
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    told = os.environ | {"XDG_CACHE_HOME": str(home), "PYTHONPATH": paths, "TMPDIR": str(tmp_path)}
    done = [
        subprocess.run([sys.executable, "-c", train], env=told, capture_output=True, text=True, check=True).stdout
        for _ in range(2 if writable else 1)
    ]
    here = hashlib.sha256(trained("fused", [7])[0].weights.numpy().tobytes()).hexdigest()
    assert {one.strip() for one in done} == {here}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "features", "lanes"), [("haswell", "+avx,+avx2,+fma", 8), ("x86-64", "+sse2", 4)])
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of processors of x86")
def test_processors_with_narrower_vectors(name: str, features: str, lanes: int) -> None:
    """Compiled anew, for vectors of 8 and of 4 numbers."""
    check = (
        "import test_engine as t; from rankfall.train.fused.tile import LANES; "
        f"assert LANES == {lanes}, LANES; [t.test_a_step_is_the_plain_one(name) for name in t.EDGES]"
    )
    narrow = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features}
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", check], env=os.environ | narrow | {"PYTHONPATH": paths}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
