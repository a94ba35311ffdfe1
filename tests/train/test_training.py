"""What makes a stacked result trustworthy: isolation, replay, resume, divergence."""

import math
from typing import Any

import pytest
import torch
from helpers import cells
from stacks import CPU, fit_stack, sorting_stack
from torch import Tensor

from rankfall.nets.network import Shape
from rankfall.random_streams import stream
from rankfall.tasks.sorting import sorting
from rankfall.train import recipe
from rankfall.train.data import Data
from rankfall.train.device import matrix_products
from rankfall.train.dropout import SeededDropout
from rankfall.train.members import DIVERGED, RUNNING, STOPPED, Members
from rankfall.train.objectives import classes, values
from rankfall.train.schedules.polynomial import polynomial

SHAPE = Shape("tokens", "classes", length=5, size_in=6, size_out=6)
RUN = {"epochs": 4, "lr": 3e-3, "dropout": 0.1}  # 28 steps
WILD = {"lr": 1e30}
# One that runs to the end, one that stops, one that diverges.
FATES: dict[str, Any] = {"each": [{}, {"stop_loss": 10.0}, WILD], "architecture": {"norm": "none"}}


def trained(
    seeds: list[int], stop_at: int | None = None, saved: dict[str, Tensor] | None = None, **changes: Any
) -> tuple[Members, dict[str, Tensor], dict[str, Tensor]]:
    """Train a stack to its end, or up to a step; return the stack, its history and its state at that step."""
    members, data, training = sorting_stack(seeds, **{"training": RUN, **changes})
    history, state = fit_stack(members, data, training, stop_at=stop_at, saved=saved)
    return members, history.tensors, state


@pytest.mark.parametrize(
    ("optimizer", "architecture"),
    [
        ("adam", {}),
        ("muon", {"normaliser": "l2", "norm_placement": "pre", "mlp": "gelu"}),
        ("adamw", {"attention": "gau", "position": {"name": "shaw", "shared": False}, "normaliser": "softmax"}),
    ],
)
def test_isolation_float64(optimizer: str, architecture: dict[str, Any]) -> None:
    """A cell alone, in a stack of 3 and in one of 16 is the same network to 1e-12 after training with dropout."""
    settings = {
        "training": RUN | {"dtype": "float64", "epochs": 2, "optimizer": optimizer},
        "architecture": architecture,
    }
    alone = trained([7], **settings)[0].weights[0]
    for size, place in ((3, 1), (16, 9)):
        seeds = list(range(100, 100 + size))
        seeds[place] = 7
        torch.testing.assert_close(trained(seeds, **settings)[0].weights[place], alone, rtol=1e-12, atol=1e-12)


@pytest.fixture(scope="module")
def undisturbed() -> tuple[Members, dict[str, Tensor]]:
    return trained([3, 1, 2], **FATES)[:2]


@pytest.mark.parametrize("step", [3, 7, 20, 28])
def test_resume_is_bit_identical(undisturbed: tuple[Members, dict[str, Tensor]], step: int) -> None:
    """From a checkpoint at any step (the last of an epoch and the last of all among them) the end is the undisturbed one, bit for bit, and
    a member that stopped or diverged before stays as it was."""
    whole, history = undisturbed
    again, again_history, _ = trained([3, 1, 2], saved=trained([3, 1, 2], stop_at=step, **FATES)[2], **FATES)
    assert again.status.tolist() == whole.status.tolist() == [RUNNING, STOPPED, DIVERGED]
    assert again.step_count == 28 and again.last_step.tolist() == whole.last_step.tolist()
    assert torch.equal(again.weights, whole.weights)
    for name in history:
        assert torch.equal(again_history[name].nan_to_num(-1), history[name].nan_to_num(-1)), name


def test_order_of_the_data_belongs_to_seed_and_epoch() -> None:
    data = Data.from_datasets([sorting(stream(0, "data"), train=64, test=2)] * 2, torch.float32, CPU)
    first, second = (data.orders([3, 4], epoch, shuffle=True) for epoch in (0, 1))
    assert torch.equal(first.sort(1).values, torch.arange(64).expand(2, -1))
    assert not torch.equal(first[0], second[0])
    assert not torch.equal(first[0], first[1])
    assert torch.equal(first[1], data.orders([4], 0, shuffle=True)[0])
    assert torch.equal(data.orders([3], 1, shuffle=False)[0], torch.arange(64))


def test_divergence_is_contained() -> None:
    """A member that is made to diverge is frozen at finite weights; the others end bit-identical to a run in which it behaves."""
    settings: dict[str, Any] = {"training": RUN | {"optimizer": "sgd"}, "architecture": {"norm": "none"}}
    wild, calm = (trained([0, 1, 2], each=[{}, middle, {}], **settings)[0] for middle in (WILD, {}))
    assert wild.status.tolist() == [RUNNING, DIVERGED, RUNNING]
    assert int(wild.last_step[1]) < int(wild.last_step[0])
    assert wild.weights.isfinite().all()
    assert torch.equal(wild.weights[[0, 2]], calm.weights[[0, 2]])


def test_members_keep_their_hyperparameters() -> None:
    """Learning rate, decay and clip are each member's own: a stack of three settings equals three runs of one setting each."""
    settings = [{"lr": 1e-3}, {"lr": 1e-2, "weight_decay": 0.1}, {"lr": 3e-3, "clip": 0.01}]
    base = RUN | {"dtype": "float64"}
    together = trained([0, 0, 0], training=base, each=settings)[0].weights
    for k, more in enumerate(settings):
        torch.testing.assert_close(
            trained([0], training=base | more)[0].weights[0], together[k], rtol=1e-12, atol=1e-12
        )
    assert not torch.allclose(together[0], together[2], atol=1e-4)


@pytest.mark.parametrize(("change", "epochs"), [({"stop_loss": 10.0}, 1), ({"stop_loss": 1.79}, 2), (WILD, 1), ({}, 4)])
def test_the_record_of_a_member_does_not_depend_on_its_neighbours(change: dict[str, Any], epochs: int) -> None:
    """One that has stopped or diverged has no epochs after, though a neighbour runs on; one that runs does not see it."""
    run = {"training": RUN | {"optimizer": "sgd", "lr": 1.0, "dtype": "float64"}, "architecture": {"norm": "none"}}
    alone = trained([1], each=[change], **run)[1]
    together = trained([0, 1, 2], each=[{}, change, WILD], **run)[1]
    assert int((together["train.asked"][1] > 0).sum()) == epochs
    for name, value in alone.items():
        torch.testing.assert_close(together[name][1], value[0], rtol=1e-12, atol=1e-12, equal_nan=True, msg=name)


def test_every_value_is_asked() -> None:
    """-1 says that no class is asked for; of a value it is as good as any."""
    targets = torch.tensor([[[[-1.0, 0.0], [0.5, 0.2]], [[0.0, -1.0], [1.0, 0.0]]]])  # K, B, T, C
    assert values.grade(torch.zeros_like(targets), targets).asked.tolist() == [4]
    graded = classes.grade(torch.zeros(1, 2, 2, 3), torch.tensor([[[-1, 0], [2, -1]]]))
    assert graded.asked.tolist() == [2]
    assert graded.sums["accuracy"].tolist() == [1]


@pytest.mark.parametrize(
    ("name", "reference"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW), ("sgd", torch.optim.SGD)]
)
def test_optimizer_is_torchs(name: str, reference: Any) -> None:
    """Twenty-eight steps agree with torch.optim on the same losses."""
    settings = {"dtype": "float64", "optimizer": name, "weight_decay": 0.01, "shuffle": False, "epochs": 4, "lr": 3e-3}
    ours = trained([0], training=settings)[0]
    (cell,) = cells(training=settings)
    start = recipe.initial(cell.architecture, SHAPE, [0], [cell.training], CPU)
    data = sorting(stream(0, "data"), train=64, test=32, length=5, symbols=6)
    optimizer = reference(list(start.module.parameters()), lr=3e-3, weight_decay=0.01)
    for begin in list(range(0, 64, 10)) * 4:
        outputs = start.module(data.train.inputs[None, begin : begin + 10])
        answers = data.train.targets[begin : begin + 10].flatten()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(outputs.flatten(0, 2), answers).backward()
        optimizer.step()
    theirs = dict(start.module.named_parameters())
    for at, value in ours.tensors().items():
        # A key bias adds the same to all scores of a row: its gradient is rounding noise, which Adam scales to full steps.
        if not at.endswith("key.bias"):
            torch.testing.assert_close(value, theirs[at].detach(), rtol=1e-9, atol=1e-11)


def test_the_polynomial_schedule_by_hand() -> None:
    """A straight line up, then a power of what is left."""
    rates = [polynomial(epoch, 7, warmup=3) for epoch in range(7)]
    assert rates == pytest.approx([0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25])
    assert [polynomial(epoch, 4, power=2.0) for epoch in range(4)] == pytest.approx([1, 9 / 16, 4 / 16, 1 / 16])


def test_dropout_masks_belong_to_seed_place_and_step() -> None:
    """A mask does not depend on the stack; it changes with seed, place and step; its rate and scale are right."""
    x = torch.ones(3, 50, 40)
    stacked, alone = SeededDropout([5, 6, 7], 0.25), SeededDropout([6], 0.25)
    stacked.step = alone.step = 3
    mask = stacked(x, "here")
    assert torch.equal(mask[1], alone(x[:1], "here")[0])
    assert not torch.equal(mask[0], mask[1])
    assert not torch.equal(mask, stacked(x, "there"))
    kept = mask != 0
    assert abs(kept.double().mean() - 0.75) < 4 * math.sqrt(0.25 * 0.75 / mask.numel())
    assert mask[kept].unique().tolist() == pytest.approx([4 / 3])
    stacked.step = 4
    assert not torch.equal(mask, stacked(x, "here"))


BF16 = {"epochs": 2, "lr": 1e-3, "dropout": 0.1, "batch": 8, "precision": "bf16"}


def test_products_in_bfloat16_are_off_by_their_rounding() -> None:
    """2^-9 at most in each factor; not by nothing, for then it would not be bfloat16."""
    gradients = []
    for precision in ("full", "bf16"):
        members, data, _ = sorting_stack([4, 9], train=32, test=8, training=BF16)
        (batch,) = data.epoch([4, 9], 0, 32, False)
        with matrix_products(precision, CPU):
            members.differentiate(classes.classes(members.module, batch).loss)
        gradients.append(members.grads.clone())
    full, rounded = gradients
    off = (rounded - full).norm(dim=1) / full.norm(dim=1)
    assert rounded.dtype == torch.float32
    assert ((off > 1e-4) & (off < 2e-2)).all()


def test_every_step_casts_the_weights_that_it_has() -> None:
    """Training within one context and within one a step is the same: no cast of earlier weights is kept."""
    together, data, training = sorting_stack([4, 9], train=32, test=8, training=BF16)
    with recipe.products(training, CPU):
        fit_stack(together, data, training)
    apart, data, training = sorting_stack([4, 9], train=32, test=8, training=BF16)
    for epoch in range(2):
        apart.begin_epoch(epoch, 2)
        for batch in data.epoch([4, 9], epoch, 8, True):
            with recipe.products(training, CPU):
                apart.step(classes.classes, batch)
    assert torch.equal(together.weights, apart.weights)
    plain, data, training = sorting_stack([4, 9], train=32, test=8, training=BF16)
    fit_stack(plain, data, training)
    assert not torch.equal(together.weights, plain.weights)
