"""Guards that a network that measures would take apart wrongly is not trained without saying so."""

import pytest

from rankfall.design import Component
from rankfall.trial import kinds
from rankfall.trial.candidate import Candidate, Refused
from rankfall.trial.kinds import try_component
from rankfall.trial.setting import Surroundings

OTHERWISE = "cannot have the whole by blocks, and does not say BREAKS\n  fix: write BREAKS = ('blocks',)"
ALL = "and does not say BREAKS\n  fix: write BREAKS = ('blocks', 'weights', 'heads', 'values')"
BAD = [
    ("block", "Doubled", OTHERWISE),
    ("block", "Twice", ALL),
    ("residual", "LastTwo", OTHERWISE),
]


def declare(monkeypatch: pytest.MonkeyPatch, breaks: tuple[str, ...]) -> None:
    """Make components declare BREAKS. What a user's component does not declare is learned (`describe.py`)."""

    def declaring(*given: object) -> Candidate:
        candidate = Candidate(*given)  # type: ignore[arg-type]
        candidate.facts = {"BREAKS": breaks}
        return candidate

    monkeypatch.setattr(kinds, "Candidate", declaring)


@pytest.mark.parametrize(("kind", "name", "what"), BAD)
def test_a_component_that_declares_too_little_is_refused(
    kind: str, name: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(monkeypatch, ())
    with pytest.raises(Refused) as refused:
        try_component(kind, Component(name=f"mylab_breaks:{name}"), Surroundings())
    said = str(refused.value)
    assert what in said and f"mylab_breaks.py, {name})" in said and said.count("\n  fix: ") == 1


@pytest.mark.parametrize(
    ("kind", "name", "breaks"),
    [
        ("block", "Usual", ()),
        ("block", "Doubled", ("blocks",)),
        ("block", "Twice", ("blocks", "weights", "heads", "values")),
        ("residual", "LastTwo", ("blocks",)),
    ],
)
def test_a_component_that_declares_it_passes(
    kind: str, name: str, breaks: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(monkeypatch, breaks)
    try_component(kind, Component(name=f"mylab_breaks:{name}"), Surroundings())
