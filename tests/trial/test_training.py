"""Guards that objectives, optimisers and parts of networks are refused whose faults show in a sum or in training mode."""

from pathlib import Path
from typing import Any

import component_pages
import pytest

from rankfall.design import Component
from rankfall.learned import LEARNED
from rankfall.trial.candidate import Refused
from rankfall.trial.kinds import KINDS, try_component
from rankfall.trial.setting import Surroundings

AT_ONCE = [
    ("objective", "edits_targets", "edits `batch.targets` in place"),
    ("objective", "edits_evaluated", "edits `batch.targets` in place"),
    ("objective", "asks_one", "gives accuracy "),
    ("objective", "asks_all", "says that 24 targets are asked, asked, of "),
    ("objective", "mean_of_right", "for the halves of a batch, and "),
    ("objective", "between_samples", "gives a loss, times the targets asked, of "),
    ("objective", "twice_as_right", "gives accuracy_of_mine "),
    ("optimizer", "SmallerRate", "edits lr or decay in place, at step 1"),
    ("norm", "Dropping", "gives something else in training mode, given states: networks are always"),
    (
        "norm",
        "DroppingByHand",
        "gives something else in training mode, given states: networks are always in evaluation mode",
    ),
]


@pytest.mark.parametrize(("kind", "name", "what"), AT_ONCE, ids=lambda text: str(text)[:24])
def test_is_refused_in_two_lines(kind: str, name: str, what: str) -> None:
    with pytest.raises(Refused) as refused:
        try_component(kind, Component(name=f"mylab_training:{name}"), Surroundings())
    said = str(refused.value)
    assert what in said and f"mylab_training.py, {name})" in said and said.count("\n  fix: ") == 1


STEADY = [
    ("objective", "mylab_training:between_learned_samples"),
    ("optimizer", "mylab_training:Plain"),
    ("norm", "mylab_training:Steady"),
]


@pytest.mark.parametrize(("kind", "name"), STEADY)
def test_what_does_the_same_in_both_modes_and_at_every_step_passes(kind: str, name: str) -> None:
    try_component(kind, Component(name=name), Surroundings())


EXAMPLES = [
    pytest.param(page, kind, written, id=f"{page}-{kind}", marks=pytest.mark.long if kind in LEARNED else ())
    for page in component_pages.NAMES
    for kind, written in component_pages.components(page)
    if page != "index"  # which names the attention of another page
]


def test_every_page_of_a_kind_that_is_tried_has_an_example() -> None:
    kinds = {kind for page in component_pages.NAMES for kind, _ in component_pages.components(page)}
    assert kinds == KINDS.keys()


@pytest.mark.parametrize(("page", "kind", "written"), EXAMPLES)
def test_the_examples_of_the_pages_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, kind: str, written: Any
) -> None:
    component_pages.write(tmp_path, component_pages.files(page))
    monkeypatch.syspath_prepend(tmp_path)
    try_component(kind, Component.parse(written), Surroundings(inputs="tokens"))
