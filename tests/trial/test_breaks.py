"""Guards that a network that measures would take apart wrongly is not trained without saying so."""

import pytest

from rankfall.design import Component
from rankfall.trial import kinds
from rankfall.trial.candidate import Candidate, Refused
from rankfall.trial.kinds import try_component
from rankfall.trial.setting import Surroundings

OTHERWISE = "does something else with its parts than the block `attention`, and does not say BREAKS\n  fix: write BREAKS = ('blocks',)"
ALL = "and does not say BREAKS\n  fix: write BREAKS = ('blocks', 'weights', 'heads', 'values')"
BAD = [
    ("block", "Doubled", OTHERWISE),
    ("block", "Scaled", OTHERWISE),
    ("block", "Twice", f"calls its attention 2 times in a layer, {ALL}"),
    ("residual", "LastTwo", "has layers that read what earlier ones made (`asks_earlier`), and does not say BREAKS"),
]


@pytest.mark.parametrize(("kind", "name", "what"), BAD, ids=lambda text: str(text)[:24])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_what_measures_cannot_take_apart_must_say_so(kind: str, name: str, what: str, placement: str) -> None:
    with pytest.raises(Refused) as refused:
        try_component(kind, Component(name=f"mylab_breaks:{name}"), Surroundings(placement=placement))
    said = str(refused.value)
    assert what in said and f"mylab_breaks.py, {name})" in said and said.count("\n  fix: ") == 1


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("block", "Usual", ()),
        ("block", "Doubled", ("blocks",)),
        ("block", "Twice", ("blocks", "weights", "heads", "values")),
        ("residual", "LastTwo", ("blocks",)),
    ],
)
def test_what_says_so_passes(kind: str, name: str, said: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "Candidate", lambda *given: saying(Candidate(*given), *said))
    try_component(kind, Component(name=f"mylab_breaks:{name}"), Surroundings())


def test_more_than_the_blocks_is_broken_where_the_attention_is_called_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "Candidate", lambda *given: saying(Candidate(*given), "blocks"))
    with pytest.raises(
        Refused, match=r"2 times in a layer, and says BREAKS = \('blocks',\)\n  fix: write BREAKS = \('blocks', 'w"
    ):
        try_component("block", Component(name="mylab_breaks:Twice"), Surroundings())


def saying(candidate: Candidate, *said: str) -> Candidate:
    candidate.facts = {"BREAKS": said}
    return candidate
