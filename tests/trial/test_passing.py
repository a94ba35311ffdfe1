"""Guards that the trial refuses nobody who does what the contracts say: all of the package, and components of a user's own."""

from typing import Any

import pytest

from rankfall import components
from rankfall.components import AUTO
from rankfall.design import Component
from rankfall.trial.candidate import Surroundings
from rankfall.trial.kinds import KINDS, try_component

GOOD = [
    ("normaliser", "good:sparsemax", {}),
    ("normaliser", "good:Tempered", {}),
    ("position", "good:Walk", {"dimmed": False}),
    ("mlp", "good:lookup_free", {}),
    ("norm", "good:ScaledUnit", {}),
    ("sentinels", "good:Ends", {}),
    ("attention", "good:Averaging", {}),
    ("attention", "provides:Honest", {}),
    ("residual", "good:convex", {}),
    ("init", "good:orthogonal", {}),
    ("objective", "training:between_learned_samples", {}),
    ("task", "good:copying", {}),
]
REQUIRED: dict[str, dict[str, Any]] = {"multistep": {"milestones": [1, 2]}}
SMALLER: dict[str, dict[str, Any]] = {"convex_hull": {"train": 500}, "memorization": {"vocabulary": 500}}
# A network as published: a head of odd width, one token, many; without masks, and untrained.
SETTINGS = [
    Surroundings(),
    Surroundings(width=9, heads=3, head_width=3, tokens=1, masked=False),
    Surroundings(
        width=48, head_width=24, mlp_width=192, tokens=33, sentinels=2, placement="pre", mlp=False, trained=False
    ),
]
# Each in one of these; tasks, which read nothing of a network, in the first.
PACKAGE = [
    (kind, name, 0 if kind == "task" else place % len(SETTINGS))
    for kind in KINDS
    for place, name in enumerate(one for one in components.names(kind) if one != AUTO)
]


def setting_for(kind: str, name: str, setting: Surroundings) -> Surroundings:
    found = components.describe(kind, name)
    assert found is not None
    inputs = found.facts.get("ACCEPTS", "vectors") if kind == "embedding" else setting.inputs
    return Surroundings(**(vars(setting) | {"inputs": inputs}))


@pytest.mark.parametrize(("kind", "name", "setting"), PACKAGE)
def test_every_component_of_the_package_passes(kind: str, name: str, setting: int) -> None:
    component = Component(name=name, options=REQUIRED.get(name, {}) | SMALLER.get(name, {}))
    try_component(kind, component, setting_for(kind, name, SETTINGS[setting]))


@pytest.mark.parametrize("setting", SETTINGS, ids=["small", "odd", "wide"])
@pytest.mark.parametrize(("kind", "name", "options"), GOOD, ids=lambda value: str(value)[:20])
def test_components_of_ones_own_pass(kind: str, name: str, options: dict[str, Any], setting: Surroundings) -> None:
    component = Component(name=f"mylab_{name}", options=options)
    try_component(kind, component, setting_for(kind, component.name, setting))
