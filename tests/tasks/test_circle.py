"""Check the circle task: its geometry, and that each way of joining input and output is trained as it is rolled out."""

import math

import pytest
import torch

from rankfall.random_streams import stream
from rankfall.tasks.circle import advance, circle


def made(**options):
    return circle(stream(0, "data"), **options)


def test_two_points_opposite_each_other_move_one_step_and_are_tested_between_the_training_points():
    data = made(points=200, radius=0.5)
    for split in (data.train, data.test):
        inputs, targets = split.inputs.double(), split.targets.double()
        assert inputs.shape == targets.shape == (200, 2, 2)
        assert torch.allclose(inputs.norm(dim=-1), torch.tensor(0.5).double(), atol=1e-7)
        assert torch.allclose(inputs[:, 0], -inputs[:, 1], atol=1e-7)  # antipodal
        turn = torch.atan2(targets[..., 1], targets[..., 0]) - torch.atan2(inputs[..., 1], inputs[..., 0])
        assert torch.allclose(turn.remainder(2 * math.pi), torch.tensor(2 * math.pi / 200).double(), atol=1e-5)
    assert torch.allclose(data.train.inputs[0], torch.tensor([[0.5, 0.0], [-0.5, 0.0]]), atol=1e-7)
    nearest = torch.cdist(*(split.inputs[:, 0].double() for split in (data.test, data.train))).min(1).values
    assert torch.allclose(nearest, torch.tensor(math.sin(math.pi / 400)).double())  # chord of half a step
    assert math.isnan(data.chance)


def test_published_pairs_are_one_step_less_than_half_a_turn_apart():
    data = made(antipodal=False)
    assert len(data.train.inputs) == 499
    cosine = (data.train.inputs[:, 0] * data.train.inputs[:, 1]).sum(-1) / 0.3**2
    assert torch.allclose(cosine, torch.tensor(math.cos(2 * math.pi * 499 / 1000)), atol=1e-5)


@pytest.mark.parametrize("skip", ["none", "step"])
def test_who_answers_right_stays_on_the_circle(skip):
    """The roll-out of the targets themselves runs through the training points in order."""
    data = made(points=40, skip=skip)
    plain = made(points=40)
    state = data.train.inputs[0]
    for step in range(39):
        state, drawn = advance(state, data.train.targets[step], skip)
        assert torch.allclose(state, plain.train.inputs[step + 1], atol=1e-6)
        assert torch.equal(state, drawn)


def test_published_skip_adds_the_batch_before_to_the_input():
    plain, data = made(points=100, antipodal=False), made(points=100, antipodal=False, skip="published", batch=10)
    assert torch.equal(data.train.inputs[:10], plain.train.inputs[:10])
    assert torch.allclose(data.train.inputs[10:], plain.train.inputs[10:] + plain.train.inputs[:-10], atol=1e-7)
    assert torch.equal(data.train.targets, plain.train.targets)
    state, drawn = advance(torch.ones(2, 2), torch.full((2, 2), 0.5), "published")
    assert (state == 1.5).all() and (drawn == 0.5).all()
