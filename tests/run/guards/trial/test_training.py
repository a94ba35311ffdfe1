"""Guards that objectives, optimisers and parts of networks are refused whose faults show late, in a sum, or in training mode."""

import re
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from rankfall import components
from rankfall.design import Component
from rankfall.errors import RankfallError
from rankfall.run.guards.shares import check_shares
from rankfall.run.guards.trial.candidate import Candidate, Refused
from rankfall.run.guards.trial.kinds import try_component
from rankfall.run.guards.trial.setting import Surroundings
from rankfall.run.guards.trial.steps import times, try_steps

AT_ONCE = [
    ("objective", "edits_targets", "edits `batch.targets` in place"),
    ("objective", "edits_evaluated", "edits `batch.targets` in place"),
    ("objective", "asks_one", "gives accuracy "),
    ("objective", "asks_all", "says that 24 targets are asked, asked, of "),
    ("objective", "mean_of_right", "for the halves of a batch, and "),
    ("objective", "between_samples", "gives a loss, times the targets asked, of "),
    ("objective", "twice_as_right", "gives accuracy_of_mine "),
    ("optimizer", "SmallerRate", "edits lr or decay in place, at step 1"),
    ("norm", "Dropping", "has a torch.nn.Dropout, drop, which does nothing: networks are always in evaluation mode"),
    (
        "norm",
        "DroppingByHand",
        "gives something else in training mode, given states: networks are always in evaluation mode",
    ),
    ("norm", "Running", "changes its buffer 'mean' in training mode alone: networks are always in evaluation mode"),
]
LATER = [
    ("objective", "mixes_late", "mixes the members of a stack: loss of member 0 at step 21 differs"),
    ("objective", "mixes_last", "mixes the members of a stack: loss of member 1 at step 7777 differs"),
    ("objective", "appends_late", "keeps state between calls: its global 'SEEN' changed"),
    ("optimizer", "MixesLate", "mixes the members of a stack: at step 21 member 0"),
    ("optimizer", "Slow", "keeps state outside of its slots: it has a new attribute 'slow' in "),
    ("optimizer", "OwnMomentum", "keeps state outside of its slots: its attribute of it 'm' changed in "),
    ("optimizer", "LaterRate", "edits lr or decay in place, at step 64"),
]


@pytest.mark.parametrize(("kind", "name", "what"), AT_ONCE, ids=lambda text: str(text)[:24])
def test_is_refused_in_one_line(kind: str, name: str, what: str) -> None:
    with pytest.raises(Refused) as refused:
        try_component(kind, Component(name=f"mylab_training:{name}"), Surroundings())
    said = str(refused.value)
    assert what in said and f"mylab_training.py, {name})" in said and "\n" not in said


@pytest.mark.parametrize(("kind", "name", "what"), LATER, ids=lambda text: str(text)[:24])
def test_what_begins_at_a_later_step_is_refused(kind: str, name: str, what: str) -> None:
    setting = Surroundings(steps=7779)
    with pytest.raises(Refused) as refused:
        try_steps(try_component(kind, Component(name=f"mylab_training:{name}"), setting), setting)
    assert what in str(refused.value) and "\n" not in str(refused.value)


SHIPPED = [
    (kind, name) for kind in ("objective", "optimizer") for name in components.names(kind) if name != components.AUTO
]
STEADY = [
    ("objective", "mylab_training:between_learned_samples"),
    ("optimizer", "mylab_good:Lion"),
    ("optimizer", "mylab_training:Plain"),
    ("norm", "mylab_training:Steady"),
]


@pytest.mark.parametrize(("kind", "name"), SHIPPED + STEADY)
def test_what_does_the_same_at_every_step_passes_in_a_second(kind: str, name: str) -> None:
    setting = Surroundings(steps=7779)
    candidate = try_component(kind, Component(name=name), setting)
    began = time.process_time()
    try_steps(candidate, setting)
    assert time.process_time() - began < 5, "about a third of a second where nothing else runs"


@pytest.mark.parametrize(("kind", "name"), [("norm", "largest"), ("objective", "focal"), ("optimizer", "signs")])
def test_the_examples_of_the_page_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str) -> None:
    page = (Path(__file__).parents[4] / "docs" / "components.md").read_text()
    (code,) = re.findall(rf"`src/rankfall/[\w/]+/{name}\.py`:\n\n```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / f"page_{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    setting = Surroundings(steps=50)
    attribute = name if kind == "objective" else name.capitalize()
    try_steps(try_component(kind, Component(name=f"page_{name}:{attribute}"), setting), setting)


def test_steps_are_the_first_tenths_of_a_hundred_powers_and_the_last() -> None:
    found = times(7779)
    assert found[:32] == [*range(1, 25), 30, 32, 40, 50, 60, 64, 70, 80] and found == sorted({*found})
    assert {90, 100, 128, 2**20, 7777, 7778, 7779} <= {*found}
    assert max(times(0)) == 2**20 and 0 not in times(1)


@pytest.mark.parametrize(
    ("sums", "said"),
    [
        ({"accuracy": 117.3, "asked": 1.0}, "gives test.accuracy 117.3 where 1 targets are asked"),
        ({"accuracy": -1.0, "asked": 1.0}, "gives test.accuracy -1"),
        ({"accuracy_constant": 3.0, "accuracy_constant.asked": 2.0, "asked": 9.0}, "accuracy_constant 3 where 2"),
        ({"accuracy": 9.0, "loss": 99.0, "asked": 9.0}, ""),
        ({"accuracy": 0.0, "asked": 0.0}, ""),
    ],
)
def test_no_share_is_kept_that_cannot_be_one(sums: Mapping[str, float], said: str) -> None:
    tensors = {name: torch.tensor([0.0, value]) for name, value in sums.items()}
    if not said:
        check_shares("mine", tensors, "test")
        return
    with pytest.raises(RankfallError, match="objective 'mine' ") as caught:
        check_shares("mine", tensors, "test")
    assert said in str(caught.value)


def test_a_candidate_of_another_kind_has_no_steps() -> None:
    try_steps(Candidate("norm", Component(name="layer"), ""), Surroundings())
