"""Guards the theory by training: on fresh tokens a network without positions stays at 1 / n, one with URPE does not; repeated data let the
first exceed it on what it has seen, and on nothing else."""

from functools import partial

import pytest
import torch

from rankfall.design import Architecture, Component, Training
from rankfall.nets.network import Shape
from rankfall.tasks._dataset import TEST, TRAIN, draw, draw_fresh
from rankfall.tasks.places import Places
from rankfall.train import recipe
from rankfall.train.data import Data
from rankfall.train.loop import evaluate, fit

LENGTH, SEEDS = 6, [0, 1]


def trained(normaliser: str, position: str, **task: int | float | None) -> dict[str, torch.Tensor]:
    """Accuracy (K,) of two seeds on what they are trained on and on 2,000 fresh sequences."""
    places = Places(length=LENGTH, train=320, test=2000, **task)  # type: ignore[arg-type]
    datasets = [draw(places, seed) for seed in SEEDS]
    part = Component
    architecture = Architecture(
        "net", normaliser=part(normaliser), position=part(position), mlp=part("gelu"), embedding=part("token"),
        head=part("classifier"), depth=2, heads=2, width=24,
    )  # fmt: skip
    training = Training("short", objective=part("classes"), lr=3e-3, epochs=30, batch=32, dtype="float64")
    shape = Shape("tokens", "classes", LENGTH, datasets[0].size_in, LENGTH)
    members = recipe.initial(architecture, shape, SEEDS, [training] * 2, torch.device("cpu"))
    fresh = partial(draw_fresh, places) if places.batch else None
    data = Data.from_datasets(datasets, torch.float64, torch.device("cpu"), fresh)
    fit(members, data, recipe.objective(training), recipe.course(training))
    sums = {split: evaluate(members, data, recipe.objective(training), split) for split in (TRAIN, TEST)}
    return {split: counts["accuracy"] / counts["asked"] for split, counts in sums.items()}


# Of one sequence at most all 6 answers are right, so the deviation of a mean over 2,000 is below 0.5 / sqrt(2000) = 0.011.
BOUND = 1 / LENGTH + 4 * 0.011


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.5, 1.0])
def test_without_positions_nothing_beats_chance_on_fresh_tokens(rho: float) -> None:
    assert (trained("softmax", "none", rho=rho)[TEST] < BOUND).all()
    if rho == 1.0:  # identical tokens: the training is long enough to learn places, if a network can
        assert (trained("urpe", "toeplitz", rho=rho)[TEST] > 0.9).all()


@pytest.mark.slow
def test_repeated_sequences_are_memorised_without_positions_and_teach_nothing() -> None:
    accuracy = trained("softmax", "none", symbols=60, repeated=5)
    assert (accuracy[TRAIN] > 0.5).all() and (accuracy[TEST] < BOUND).all()
