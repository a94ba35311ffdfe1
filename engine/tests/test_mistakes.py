"""Guards that `train_many` refuses or names what would go wrong, by each engine, and does what plain PyTorch does at the edges."""

import math
import random
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from known_modules import Known, cross_entropy, train_alone, vectors
from torch import Tensor, nn
from torch.nn import functional as F

from thousandfold import SGD, Adam, AdamW, EngineError, explain, train_many

SEEDS, STEPS = (3, 4, 9), 5
ENGINES = "program", "stack", "loop"


def linear(seed: int) -> nn.Module:
    return nn.Linear(5, 3).double()


ARGUMENTS: dict[str, Any] = {"build": linear, "loss": cross_entropy, "batches": vectors, "seeds": SEEDS, "steps": STEPS}


def train(**changes: Any) -> Any:
    return train_many(**(ARGUMENTS | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": (4, 3, 9)}, r"the state is of the seeds \[3, 4, 9\]; found \[4, 3, 9\]"),
        ({"seeds": (3, 4)}, "the state has 3 members; found 2 seeds"),
        ({"optimizer": SGD()}, "the state is of the optimiser Adam; found SGD"),
        ({"resume": {}}, "expected the `state` of an earlier result"),
        ({"build": lambda seed: nn.Linear(5, 4).double()}, r"expected weights of the shape \(3, 24\); found \(3, 18\)"),
    ],
)
def test_a_state_of_something_else_is_refused(changes: dict[str, Any], message: str) -> None:
    state = train(steps=2, engine="loop").state
    with pytest.raises(EngineError, match=message) as raised:
        train(engine="loop", **({"resume": state} | changes))
    assert "\n" not in str(raised.value)


def test_members_that_share_a_module_or_a_trained_parameter_are_refused() -> None:
    one = linear(0)
    for build in (lambda seed: one, lambda seed: nn.Sequential(one)):
        with pytest.raises(EngineError, match="a new module for each seed; seeds 3 and 4 share one"):
            train(build=build)


class Unused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(5, 3), nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Any:
        return self.used(x)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_parameter_that_the_loss_does_not_use_is_left(engine: str) -> None:
    known = Known(Unused, cross_entropy, vectors)
    result = train(build=known.build, optimizer=AdamW(lr=1e-2, weight_decay=0.1), engine=engine)
    for k, seed in enumerate(SEEDS):
        make = lambda weights: torch.optim.AdamW(weights, lr=1e-2, weight_decay=0.1)  # noqa: E731
        alone, _ = train_alone(known, seed, STEPS, make)
        for one, other in zip(result.modules[k].parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_a_mask_of_truth_values_keeps_the_program() -> None:
    def loss(module: nn.Module, batch: Any) -> Any:
        x, y, kept = batch
        each = F.cross_entropy(module(x), y, reduction="none")
        return (each * kept).sum() / kept.sum().clamp(min=1)

    def batches(step: int, seed: int) -> Any:
        x, y = vectors(step, seed)
        return x, y, x[:, 0] > 0

    result = train(loss=loss, batches=batches)
    assert result.engine == "program"
    torch.testing.assert_close(result.losses, train(loss=loss, batches=batches, engine="loop").losses)


def lengths(step: int, seed: int) -> Any:
    return tuple(x[:seed] for x in vectors(step, seed))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": 4}, r"a sequence of whole numbers as seeds, such as range\(4\); found 4"),
        ({"optimizer": torch.optim.Adam}, r"such as thousandfold.Adam\(lr=1e-3\); found the class Adam"),
        ({"loss": lambda module, batch: (module(batch[0]).mean(), batch[0])}, "a dictionary of metrics; found Tensor"),
        ({"batches": lengths}, "of the same shapes and formats for all seeds; found .*3, 5.* for seed 3 and .*4, 5"),
        ({"batches": lambda step, seed: ()}, "expected at least one tensor; found none"),
        ({"steps": -1}, "steps as a whole number, not negative; found -1"),
        ({"steps": 2.5}, "steps as a whole number, not negative; found 2.5"),
        ({"optimizer": Adam(lr=-1.0)}, "no negative lr; found -1.0"),
        ({"optimizer": Adam(lr=[0.1, math.nan, 0.1])}, "no negative lr; found"),
        ({"optimizer": Adam(schedule=lambda step: math.nan)}, r"schedule\(0\): expected a finite number; found nan"),
        ({"optimizer": Adam(schedule=lambda step: torch.ones(3))}, r"schedule\(0\): expected a number"),
    ],
)
def test_a_mistake_is_named_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(EngineError, match=message) as raised:
        train(**changes)
    assert "\n" not in str(raised.value)


def with_metric(module: nn.Module, batch: Any) -> Any:
    return cross_entropy(module, batch), {"size": batch[0].mean()}


@pytest.mark.parametrize("engine", ENGINES)
def test_losses_have_a_row_for_each_step_and_metrics_their_names(engine: str) -> None:
    def batches(step: int, seed: int) -> Any:
        x, y = vectors(step, seed)
        return (x * math.nan if step == 2 else x), y

    result = train(loss=with_metric, batches=batches, engine=engine)
    assert result.diverged == [2, 2, 2]
    assert result.losses.shape == result.metrics["size"].shape == (STEPS, 3)
    none = train(loss=with_metric, steps=0, engine=engine)
    assert none.losses.shape == none.metrics["size"].shape == (0, 3)


@pytest.mark.parametrize("late", [2, 3])  # of which results are compared at the first
@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_in_a_later_step_names_step_and_member(engine: str, late: int) -> None:
    def batches(step: int, seed: int) -> Any:
        x, y = vectors(step, seed)
        return x, (y + 5 if (step, seed) == (late, 4) else y)

    with pytest.raises(EngineError, match=rf"step {late}, member 1 \(seed 4\): .*out of bounds") as raised:
        train(batches=batches, engine=engine)
    assert "\n" not in str(raised.value) and raised.value.__cause__ is not None


def test_an_error_of_batches_names_its_arguments() -> None:
    def batches(step: int, seed: int) -> Any:
        return {}["x"] if (step, seed) == (3, 4) else vectors(step, seed)

    with pytest.raises(EngineError, match=r"batches\(3, 4\): KeyError: 'x'"):
        train(batches=batches)


class Frozen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.layer = nn.Linear(5, 5), nn.Linear(5, 3)
        self.first.requires_grad_(False)
        self.register_buffer("shift", torch.randn(5))

    def forward(self, x: Tensor) -> Any:
        return self.layer(self.first(x + self.shift).tanh())


def test_buffers_and_frozen_parameters_that_differ_keep_the_program() -> None:
    known = Known(Frozen, cross_entropy, vectors)
    assert explain(known.build, known.loss, vectors(0, 0)).engine == "program"
    result = train(build=known.build, optimizer=SGD(lr=0.1))
    assert result.engine == "program"
    for k, seed in enumerate(SEEDS):
        make = lambda weights: torch.optim.SGD(weights, lr=0.1)  # noqa: E731
        torch.testing.assert_close(result.losses[:, k], train_alone(known, seed, STEPS, make)[1], rtol=1e-12, atol=0)


class Sometimes(nn.Module):
    """Uses a layer by the size of a batch or, if `by_data`, by its numbers, as experts and dropped layers do."""

    def __init__(self, by_data: bool) -> None:
        super().__init__()
        self.by_data, self.first, self.second = by_data, nn.Linear(5, 3), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Any:
        used = x[0, 0] > 0 if self.by_data else len(x) > 4
        return self.first(x) + self.second(x) if used else self.first(x)


@pytest.mark.parametrize(("by_data", "engine"), [(False, "program"), (False, "stack"), (True, "loop")])
def test_a_step_that_does_not_use_a_parameter_does_not_count_for_it(by_data: bool, engine: str) -> None:
    known = Known(
        lambda: Sometimes(by_data), cross_entropy, lambda step, seed: [x[: 3 + step] for x in vectors(step, seed)]
    )
    changes = {"build": known.build, "batches": known.batches, "optimizer": AdamW(lr=0.1, weight_decay=0.1)}
    result = train(**changes, engine=engine)
    begun = train(**changes, engine=engine, steps=3)
    assert torch.equal(train(**changes, engine=engine, resume=begun.state).state["weights"], result.state["weights"])
    for k, seed in enumerate(SEEDS):
        alone, _ = train_alone(known, seed, STEPS, lambda weights: torch.optim.AdamW(weights, lr=0.1, weight_decay=0.1))
        for one, other in zip(result.modules[k].parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


class Shifted(nn.Module):
    """A linear layer with a plain tensor that the seed determines."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.layer, self.shift = nn.Linear(5, 3), torch.full((3,), float(seed), dtype=torch.float64)

    def forward(self, x: Tensor) -> Any:
        return self.layer(x) * self.shift


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (lambda seed: nn.Sequential(nn.Linear(5, 3), nn.Dropout(seed / 10)), "1.p"),
        (lambda seed: nn.Sequential(nn.Linear(5, 3), nn.ReLU() if seed == 4 else nn.GELU()), "the type of 1"),
        (Shifted, "shift"),
    ],
)
def test_modules_that_differ_in_attributes_are_trained_one_by_one(build: Any, what: str) -> None:
    together = train(build=lambda seed: build(seed).double())
    assert together.engine == "loop" and f"members differ in {what}, which is no parameter or buffer" in together.reason
    for k, seed in enumerate(SEEDS):
        alone = train(build=lambda seed: build(seed).double(), seeds=[seed])
        torch.testing.assert_close(together.losses[:, k], alone.losses[:, 0], rtol=1e-10, atol=1e-10)


def test_integers_beyond_those_of_float32_are_compared_exactly() -> None:
    def loss(module: nn.Module, batch: Any) -> Any:
        same = (batch[1][:, None] == batch[1]).double()
        return (torch.cdist(module(batch[0]), module(batch[0]).flip(0)) * same).sum()

    batches = lambda step, seed: (vectors(step, seed)[0], 2**54 + torch.arange(6))  # noqa: E731
    result = train(loss=loss, batches=batches)
    assert "integers up to" in result.reason
    torch.testing.assert_close(result.losses, train(loss=loss, batches=batches, engine="loop").losses)


class Averaged(nn.Module):
    """Normalises by buffers that it updates, in place or by new tensors."""

    def __init__(self, in_place: bool) -> None:
        super().__init__()
        self.layer, self.in_place = nn.Linear(5, 3), in_place
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.ones(5))

    def forward(self, x: Tensor) -> Any:
        mean = x.mean(0)
        if self.in_place:
            self.count += 1
            self.mean.mul_(0.9).add_(mean, alpha=0.1)
        x = self.layer.weight[:1] * self.mean * x  # its gradient needs this mean
        if not self.in_place:
            self.count = self.count + 1
            self.mean = 0.9 * self.mean + 0.1 * mean
        return self.layer(x) / self.count


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("engine", ["auto", "stack", "loop"])
def test_buffers_that_a_step_updates_are_those_of_training_alone(in_place: bool, engine: str) -> None:
    def loss(module: nn.Module, batch: Any) -> Any:
        value = cross_entropy(module, batch)
        return value, {"count": module.count}

    known = Known(lambda: Averaged(in_place), cross_entropy, vectors)
    result = train(build=known.build, loss=loss, optimizer=SGD(lr=0.1), engine=engine)
    assert result.metrics["count"].tolist() == [[step + 1] * 3 for step in range(STEPS)]
    for k, seed in enumerate(SEEDS):
        alone, losses = train_alone(known, seed, STEPS, lambda weights: torch.optim.SGD(weights, lr=0.1))
        torch.testing.assert_close(result.losses[:, k], losses, rtol=1e-9, atol=1e-9)
        for name, value in alone.state_dict().items():
            torch.testing.assert_close(result.modules[k].state_dict()[name], value, rtol=1e-9, atol=1e-9)


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.calls = nn.Linear(5, 3), 0

    def forward(self, x: Tensor) -> Any:
        self.calls += 1
        return self.layer(x) * (3.0 if self.calls > 1000 else 1.0)


@pytest.mark.parametrize("engine", ["auto", *ENGINES])
def test_a_module_that_counts_in_python_is_refused(engine: str) -> None:
    with pytest.raises(EngineError, match="changes the module's attribute calls, which is no tensor: make it a buffer"):
        train(build=lambda seed: Counted().double(), engine=engine)


def test_a_loss_that_depends_on_what_changes_between_steps_is_noticed_soon() -> None:
    now = {"step": 0}

    def batches(step: int, seed: int) -> Any:
        now["step"] = step
        return vectors(step, seed)

    def annealed(module: nn.Module, batch: Any) -> Any:
        return cross_entropy(module, batch) * (1 + now["step"])

    with pytest.warns(UserWarning, match="step 1: .* autograd takes the steps from here"):
        result = train(loss=annealed, batches=batches, optimizer=SGD(lr=1e-2))
    assert result.engine == "loop"
    torch.testing.assert_close(
        result.losses, train(loss=annealed, batches=batches, optimizer=SGD(lr=1e-2), engine="loop").losses
    )


class Steep(nn.Module):
    """A layer and twenty steps of the logistic map, each of which doubles differences on average."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Any:
        y = self.layer(x).sigmoid()
        for _ in range(20):
            y = 4 * y * (1 - y)
        return y


def test_rounding_that_a_network_amplifies_is_no_difference() -> None:
    def batches(step: int, seed: int) -> Any:
        return tuple(x.float() if x.is_floating_point() else x for x in vectors(step, seed))

    steep = {"build": lambda seed: Steep(), "batches": batches, "steps": 20}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = train(**steep)
    alone = train(**steep, engine="loop")
    assert result.engine == "program" and not torch.allclose(result.losses, alone.losses, rtol=1e-3)


@pytest.mark.parametrize("draw", [random.random, np.random.rand])
def test_draws_of_python_and_numpy_are_those_of_seed_and_step(draw: Any) -> None:
    def loss(module: nn.Module, batch: Any) -> Any:
        return cross_entropy(module, batch) * float(draw())

    state = random.getstate()
    result = train(loss=loss)
    assert result.engine == "loop" and random.getstate() == state
    assert torch.equal(result.losses, train(loss=loss, engine="loop").losses)
    assert not torch.allclose(result.losses[:, 0], result.losses[:, 1])
