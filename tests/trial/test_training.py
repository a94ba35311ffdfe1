"""Guards that objectives, optimisers and parts of networks are refused whose faults show in a sum or in training mode."""

import re
from pathlib import Path

import pytest

from rankfall.design import Component
from rankfall.trial.candidate import Refused
from rankfall.trial.kinds import try_component
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


@pytest.mark.parametrize(("kind", "name"), [("norm", "largest"), ("objective", "focal"), ("optimizer", "signs")])
def test_the_examples_of_the_page_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "components.md").read_text()
    (code,) = re.findall(rf"`src/rankfall/[\w/]+/{name}\.py`:\n\n```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / f"page_{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    attribute = name if kind == "objective" else name.capitalize()
    try_component(kind, Component(name=f"page_{name}:{attribute}"), Surroundings())
