"""Guards that the machine computes autograd's steps, for every component and for components of one's own, and refuses what it cannot."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import component_pages
import numpy as np
import pytest
import torch
from helpers import needed

from rankfall import components
from rankfall.design import Architecture, Component, Training
from rankfall.nets.network import Shape
from rankfall.nets.primitives import no_dropout
from rankfall.random_streams import stream
from rankfall.train import recipe
from rankfall.train.members import DIVERGED, RUNNING, STOPPED, Members
from rankfall.train.objectives._base import Graded, Samples

pytest.importorskip("numba")
from rankfall.errors import RankfallError
from rankfall.train.machine import agreement, engine
from rankfall.train.machine.engine import Machined
from thousandfold.graph import Untraceable

CPU = torch.device("cpu")
HERE = Path(__file__).parent
KINDS = ("normaliser", "position", "mask", "residual", "norm", "mlp", "attention", "sentinels", "block")
OPTIONS: dict[str, dict[str, Any]] = {"gau": {"key_width": 6}}
SMALL = {"depth": 1, "heads": 2, "width": 8, "embedding": Component("token"), "head": Component("classifier")}
TRAINING = Training("t", objective=Component("classes"), epochs=1, batch=6, dropout=0.1, lr=1e-2)
TOKENS = Shape("tokens", "classes", 5, 7, 6)
OPERATIONS = (
    *("kinked", "stepped", "written", "rare", "largest", "rounded", "diagonal", "fused", "near_gelu"),
    "tokens_by_number",
)


@pytest.fixture(autouse=True)
def own_components(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have components of a user's: those beside this file, and the attention of the documentation."""
    component_pages.write(tmp_path, component_pages.files("attention"))
    for folder in (HERE, tmp_path):
        monkeypatch.syspath_prepend(str(folder))


def members_of(
    architecture: Architecture,
    training: Training,
    shape: Shape = TOKENS,
    seeds: tuple[int, ...] = (0, 1),
    machine: bool = True,
) -> Members:
    """Return members whose weights, also those that start at zero, are random."""
    members = recipe.initial(architecture, shape, seeds, [training] * len(seeds), CPU)
    for row, seed in zip(members.weights, seeds):
        row += torch.from_numpy(stream(seed, "noise").normal(0, 0.1, row.shape)).to(row.dtype)
    if machine:
        members.engine = Machined(members, architecture, shape, training)
    return members


def batch_of(
    members: Members,
    shape: Shape = TOKENS,
    samples: int = 6,
    constant: int | None = None,
    draw: int = 0,
    special: int = 0,
) -> Samples:
    rows = []
    for seed in members.seeds:
        rng = stream(seed, "batch", draw)
        if shape.inputs == "tokens":
            inputs = torch.from_numpy(rng.integers(shape.size_in, size=(samples, shape.length)))
        else:
            inputs = torch.from_numpy(rng.normal(size=(samples, shape.length, shape.size_in))).to(members.weights.dtype)
        if shape.targets == "classes":
            targets = torch.from_numpy(rng.integers(-1, shape.size_out, size=(samples, shape.length)))
        else:
            targets = torch.from_numpy(rng.normal(size=(samples, shape.length, shape.size_out)))
            targets = targets.to(members.weights.dtype)
        rows.append((inputs, targets))
    inputs, targets = (torch.stack(each) for each in zip(*rows))
    about = shape.size_in, special, constant, True
    return Samples(inputs, targets, members.seeds, ("train", draw), *about)


def passes(members: Members, batch: Samples) -> Graded:
    assert isinstance(members.engine, Machined)
    return members.engine.passes(members, batch)


def rounding_of(members: Members, training: Training, batch: Samples, drop: Any) -> torch.Tensor:
    """Return how far autograd's own gradients go apart where weights are off by up to half a last bit."""
    weights, gradients, apart = members.weights.detach().clone(), members.grads.clone(), []
    for k in range(8):
        drawn = torch.from_numpy(stream(k, "rounding").uniform(-1, 1, tuple(weights.shape)))
        members.weights.data.copy_(weights * (1 + 2.0**-53 * drawn))
        members.differentiate(recipe.objective(training)(members.module, batch, drop).loss)
        apart.append((members.grads - gradients).abs().amax())
    members.weights.data.copy_(weights)
    members.grads.copy_(gradients)
    return torch.stack(apart).amax()


def check(
    architecture: Architecture,
    training: Training = TRAINING,
    shape: Shape = TOKENS,
    bound: float = 1e-12,
    amplifies: bool = False,
    **batch: Any,
) -> None:
    """Compare in float64: counts are equal, loss and gradient of each member within `bound` of autograd's.

    `amplifies`: or within what rounding makes of autograd's own gradient, in a network that nobody chose.
    """
    members = members_of(architecture, replace(training, dtype="float64"), shape)
    samples = batch_of(members, shape, **batch)
    members.step_count = 3
    graded, gradients = passes(members, samples), members.grads.clone()
    drop = members.dropout.at(3) if members.dropout else no_dropout
    expected = recipe.objective(training)(members.module, samples, drop)
    members.differentiate(expected.loss)
    most = bound * members.grads.abs().amax()
    if amplifies and (gradients - members.grads).abs().amax() > most:
        most = torch.maximum(most, 8 * rounding_of(members, training, samples, drop))
    assert (gradients - members.grads).abs().amax() <= most
    assert torch.allclose(graded.loss, expected.loss.detach(), rtol=bound, atol=bound)
    assert torch.equal(graded.asked, expected.asked)
    for ours, theirs in ((graded.sums, expected.sums), (graded.asked_of, expected.asked_of)):
        assert {k: v.tolist() for k, v in ours.items()} == {k: v.tolist() for k, v in theirs.items()}


def network(**parts: Any) -> Architecture:
    named = {
        kind: Component(name, OPTIONS.get(name, {})) if isinstance(name, str) and kind != "norm_placement" else name
        for kind, name in parts.items()
    }
    return Architecture("a", **{**SMALL, "mlp": Component("gelu"), **named})


QUICK = (
    *("softmax", "rope", "gau", "causal", "column", "gelu", "add", "fire"),
    *("softpick", "sink", "score_scale", "qk_norm", "swiglu"),
    *("gated", "differential", "retention", "gated_linear", "delta", "selective"),
    *("scheduled", "layer_scale", "rezero", "normalised", "deepnorm", "by_depth"),
)  # of the default tests; the others take a minute more


def every_component() -> Iterator[Any]:
    for kind in KINDS:
        for name in components.names(kind):
            yield pytest.param(kind, name, marks=[] if name in QUICK else pytest.mark.slow)


@pytest.mark.parametrize(("kind", "name"), list(every_component()))
def test_gradients_are_autograds_for_every_component(kind: str, name: str) -> None:
    check(network(**{"mlp": "none", kind: name} | needed(kind, name)))


OTHERS = {
    "an attention of docs/components": network(attention="lab.attention:Capped", position="rope", mask="causal"),
    "gated unit": network(attention="gau", position="rope", normaliser="relu2", norm_placement="pre"),
    "values of the first layer": network(depth=2, attention="value_residual", residual="rezero", mlp="none"),
    "attention over layers": network(depth=2, residual="attentive", norm_placement="pre"),
    "dense connections": network(depth=2, block="dense", norm="by_depth", norm_placement="pre"),
    "streams": network(block=Component("hyper", {"mixing": "doubly_stochastic", "rounds": 3}), residual="add"),
    "streams with numbers of each token": network(block="dynamic_hyper", residual="add"),
    "norms around the branch": network(block="peri", residual="layer_scale", norm_placement="pre"),
    "two layers": network(depth=2, attention="linear", mlp_residual=Component("scaled")),
}


@pytest.mark.parametrize("name", OTHERS)
def test_gradients_are_autograds_in_other_networks(name: str) -> None:
    check(OTHERS[name])


@pytest.mark.parametrize("name", OPERATIONS)
def test_gradients_are_autograds_of_what_pytorch_has_kernels_for(name: str) -> None:
    check(network(mlp=f"own_operations:{name}"))


def test_gradients_are_autograds_for_vectors_and_values() -> None:
    vectors = network(embedding="coordinates", head="regression", position="none", normaliser="l2")
    check(vectors, replace(TRAINING, objective=Component("values")), Shape("vectors", "values", 4, 2, 3))
    check(network(embedding="linear", position="none"), TRAINING, Shape("vectors", "classes", 4, 2, 3))


def test_a_constant_answer_is_counted_apart() -> None:
    check(network(normaliser="l2"), constant=2)


def random_networks(count: int, seed: int) -> Iterator[tuple[Architecture, Shape, int]]:
    rng = np.random.default_rng(seed)
    any_of = lambda values: values[rng.integers(len(values))]  # noqa: E731
    for _ in range(count):
        heads = int(any_of([1, 2, 4]))
        parts = {kind: any_of(components.names(kind)) for kind in ("mask", "residual", "norm", "mlp", "sentinels")}
        attention = any_of(["multihead", "multihead", "gated", "delta", "linear", "gau"])
        if attention in ("multihead", "gated"):
            parts |= {kind: any_of(components.names(kind)) for kind in ("normaliser", "position")}
        if attention == "delta":
            parts |= needed("attention", attention)
        sizes = {"heads": heads, "width": heads * int(any_of([4, 6, 10])), "depth": int(any_of([1, 2]))}
        built = network(attention=attention, norm_placement=any_of(["pre", "post"]), **sizes, **parts)
        if attention == "linear" and parts["mask"] not in ("none", "causal"):
            continue  # no such network can be built
        yield built, Shape("tokens", "classes", int(any_of([2, 3, 5, 8])), 7, 6), int(any_of([4, 5, 8, 17]))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_gradients_are_autograds_in_random_networks(seed: int) -> None:
    for architecture, shape, samples in random_networks(3 if seed == 0 else 40, seed):
        check(architecture, shape=shape, bound=1e-9, amplifies=True, samples=samples)


L2 = network(normaliser="l2", norm="rms")


@pytest.mark.parametrize("name", ["muon"])  # others are in test_descent.py
def test_training_is_the_plain_engines(name: str) -> None:
    """Weights, fates and slots after steps on new batches, with decay, clip and a schedule of the learning rate, in float64."""
    training = replace(TRAINING, dtype="float64", optimizer=Component(name), weight_decay=0.1, clip=0.5)
    both = [members_of(L2, training, machine=machine) for machine in (False, True)]
    for members in both:
        for step in range(5):
            members.begin_epoch(step, 5)
            members.step(recipe.objective(training), batch_of(members, draw=step))
    plain, machine = both
    assert torch.allclose(plain.weights, machine.weights, rtol=1e-9, atol=1e-9)
    assert all(torch.allclose(one, other, rtol=1e-8, atol=1e-10) for one, other in zip(plain.slots, machine.slots))
    assert plain.last_step.tolist() == machine.last_step.tolist() == [5, 5]
    assert all(torch.equal(value.flatten(1), part) for value, part in zip(machine.parameters, split(machine)))


def split(members: Members) -> tuple[torch.Tensor, ...]:
    return members.weights.split([value[0].numel() for value in members.parameters], 1)


def trained(seeds: tuple[int, ...], steps: int = 4) -> Members:
    members = members_of(L2, TRAINING, seeds=seeds)
    for step in range(steps):
        members.step(recipe.objective(TRAINING), batch_of(members, draw=step))
    return members


def test_a_resumed_training_is_the_same_bits() -> None:
    whole, first = trained((0, 1), steps=6), trained((0, 1), steps=3)
    saved = {name: value.clone() for name, value in first.state().items()}
    resumed = members_of(L2, TRAINING)
    resumed.restore(saved)
    for step in range(3, 6):
        resumed.step(recipe.objective(TRAINING), batch_of(resumed, draw=step))
    assert torch.equal(whole.weights, resumed.weights)
    assert all(torch.equal(one, other) for one, other in zip(whole.slots, resumed.slots))


def test_a_member_that_diverges_stops_alone_and_one_that_has_stopped_takes_no_step() -> None:
    alone, members = trained((0,)), members_of(L2, TRAINING, seeds=(0, 1, 2))
    members.weights[1, :40] = torch.nan
    members.status[2] = STOPPED
    before = members.weights.clone()
    batches = [batch_of(members, draw=step) for step in range(4)]
    members.steps(recipe.objective(TRAINING), batches[:1])
    members.steps(recipe.objective(TRAINING), batches[1:])
    assert members.status.tolist() == [RUNNING, DIVERGED, STOPPED] and members.last_step.tolist() == [4, 0, 0]
    assert torch.equal(members.weights[0], alone.weights[0])
    assert torch.equal(members.weights[1:].nan_to_num(), before[1:].nan_to_num())


def test_rows_that_no_sample_has_keep_a_gradient_of_exactly_zero() -> None:
    members = members_of(L2, TRAINING)
    batch = batch_of(members)
    batch = replace(batch, inputs=batch.inputs.clamp(max=3))
    passes(members, batch)
    table = dict(zip(members.layout, members.grads.split([value[0].numel() for value in members.parameters], 1)))
    rows = table["embedding.table.weight"]
    assert (rows.view(2, 7, 8)[:, 4:] == 0).all() and (rows.view(2, 7, 8)[:, :4] != 0).any()


REFUSED = {
    "random numbers": ({"normaliser": "own:noisy"}, "random numbers of torch"),
    "a number of the data": ({"normaliser": "own:by_value"}, "depends on numbers of the data|data-dependent"),
    "a reshape": (
        {"mlp": "own_operations:rearranged"},
        r"a reshape that cuts a dimension of \[6, 32, 5\], which was joined",
    ),
    "a sort": ({"mlp": "own_operations:ordered"}, r"the operation aten\.sort"),
    "large integers": ({"mlp": "own_operations:counted"}, r"mul.* integers, which may give .*, more than 16777216"),
    "an objective that draws": ({}, "place of a batch"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_trace_is_refused_by_what_a_component_wrote(case: str) -> None:
    parts, why = REFUSED[case]
    training = TRAINING if parts else replace(TRAINING, objective=Component("own:drawn"))
    members = members_of(network(**parts), training)
    with pytest.raises(Untraceable, match=why):
        passes(members, batch_of(members))


WORDS = Shape("tokens", "classes", 9, 12, 12)
DRAWING = {
    "masked_tokens": Component("masked_tokens", {"rate": 0.4, "hidden": 0.5, "random": 0.3}),
    "prefixes": Component("prefixes", {"shortest": 3}),
    "own:weighted": Component("own:weighted", {"least": 0.25}),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "prefixes")) for name in DRAWING]
)
def test_what_an_objective_draws_is_the_plain_engines_at_every_step(name: str) -> None:
    """Draws are inputs, of the same streams: a program that was written at one step is right at the others."""
    training = replace(TRAINING, objective=DRAWING[name])
    for draw in range(3):
        check(L2, training, WORDS, special=3, draw=draw)


def test_a_symbol_that_is_none_ends_training() -> None:
    members = members_of(L2, TRAINING)
    batch = batch_of(members)
    with pytest.raises(RankfallError, match="7 symbols"):
        passes(members, replace(batch, inputs=batch.inputs + 5))


def both_ways(training: Training = TRAINING) -> str:
    members = members_of(L2, training)
    return agreement.disagreement(L2, TOKENS, training, [batch_of(members), batch_of(members, samples=4, draw=1)])


def test_the_machine_agrees_with_autograd_in_float32() -> None:
    assert both_ways() == "" and both_ways(replace(TRAINING, dropout=0.0)) == ""


def test_what_begins_to_differ_in_training_ends_it_with_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is compared when its number is due. Comparing leaves no trace in the weights."""
    monkeypatch.setattr(engine, "COMPARED", 3)
    compared = trained((0, 1), steps=8)
    monkeypatch.undo()
    assert torch.equal(compared.weights, trained((0, 1), steps=8).weights)
    monkeypatch.setattr(engine, "COMPARED", 3)
    members, passes_of = members_of(L2, TRAINING), Machined.passes

    def late(self: Machined, members: Members, batch: Samples) -> Graded:
        members.step_count += members.step_count >= 5  # its dropout, from the sixth step on
        return passes_of(self, members, batch)

    monkeypatch.setattr(Machined, "passes", late)
    for step in range(6):
        members.step(recipe.objective(TRAINING), batch_of(members, draw=step))
    with pytest.raises(RankfallError, match=r"step 6 of seed .: the machine does not agree with autograd: the loss is"):
        members.step(recipe.objective(TRAINING), batch_of(members, draw=6))
