"""Guards that the trial refuses nobody who does what the contracts say: all of the package, the examples of the documentation, and
components of a user's own, also by `rankfall.testing.check_component`."""

from pathlib import Path
from typing import Any

import component_pages
import mylab_bad  # type: ignore[import-not-found]
import mylab_plain  # type: ignore[import-not-found]
import pytest

from rankfall import components
from rankfall.components import AUTO
from rankfall.design import Component
from rankfall.errors import RankfallError
from rankfall.testing import check_component
from rankfall.trial.candidate import Surroundings
from rankfall.trial.describe import LEARNED
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
    ("init", "good:orthogonal", {}),
    ("objective", "training:between_learned_samples", {}),
]
REQUIRED: dict[str, dict[str, Any]] = {"multistep": {"milestones": [1, 2]}}
SMALLER: dict[str, dict[str, Any]] = {"convex_hull": {"train": 500}, "memorization": {"vocabulary": 500}}
# A network as published: a head of odd width, one token, many; without masks, and untrained.
WIDE = {"width": 48, "head_width": 24, "mlp_width": 192, "tokens": 33, "sentinels": 2, "placement": "pre"}
SETTINGS = [
    Surroundings(),
    Surroundings(width=9, heads=3, head_width=3, tokens=1, masked=False),
    Surroundings(**WIDE, mlp=False, trained=False),  # type: ignore[arg-type]
]
# Each in one of these; tasks, which read nothing of a network, in the first.
PACKAGE = [
    (kind, name, 0 if kind == "task" else number % len(SETTINGS))
    for kind in KINDS
    for number, name in enumerate(name for name in components.names(kind) if name != AUTO)
]
EXAMPLES = [
    pytest.param(page, kind, written, id=f"{page}-{kind}", marks=pytest.mark.long if kind in LEARNED else ())
    for page in component_pages.NAMES
    for kind, written in component_pages.components(page)
    if page != "index"  # which names the attention of another page
]


def setting_for(kind: str, name: str, setting: Surroundings) -> Surroundings:
    """Return the setting with the inputs that an embedding accepts."""
    description = components.describe(kind, name)
    assert description is not None
    inputs = description.facts.get("ACCEPTS", "vectors") if kind == "embedding" else setting.inputs
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


@pytest.mark.parametrize(("page", "kind", "written"), EXAMPLES)
def test_the_examples_of_the_pages_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, kind: str, written: Any
) -> None:
    component_pages.write(tmp_path, component_pages.files(page))
    monkeypatch.syspath_prepend(tmp_path)
    try_component(kind, Component.parse(written), Surroundings(inputs="tokens"))


@pytest.mark.parametrize("network", [{}, {"width": 48, "heads": 6, "head_width": 8, "tokens": 33}])
@pytest.mark.parametrize("component", [mylab_plain.Plain, "mylab_plain:Plain"], ids=["class", "name"])
def test_a_plain_attention_without_declarations_passes(component: Any, network: dict[str, Any]) -> None:
    check_component("attention", component, **network)


def test_a_mistake_is_an_error_of_two_lines() -> None:
    with pytest.raises(RankfallError) as caught:
        check_component("normaliser", mylab_bad.mixes_members)
    mistake, fix = str(caught.value).splitlines()
    assert "mylab_bad.py, mixes_members) mixes the members" in mistake and fix.startswith("  fix: ")


UNKNOWN = "'normalizer' is not a kind of component that can be checked; did you mean 'normaliser'?"


@pytest.mark.parametrize(
    ("arguments", "network", "message"),
    [
        (("normalizer", "softmax"), {}, UNKNOWN),
        (("norm", "layer"), {"widht": 3}, "'widht' is not a size of a network"),
        (("norm", "laier"), {}, "laier"),
    ],
)
def test_what_cannot_be_checked_says_why(arguments: tuple[Any, ...], network: dict[str, Any], message: str) -> None:
    with pytest.raises(RankfallError) as caught:
        check_component(*arguments, **network)
    assert message in str(caught.value)
