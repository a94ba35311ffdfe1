"""Guards that an attention has what it says it provides, and that its weights are those that it mixes with."""

import pytest

from rankfall.design import Component
from rankfall.trial.candidate import Refused
from rankfall.trial.kinds import try_component
from rankfall.trial.setting import Surroundings

BAD = [
    (
        "attention",
        "Lacking",
        "says PROVIDES = ('weights', 'heads', 'factors by offset') and has no `weights`\n  fix: write it, or leave 'weights' out",
    ),
    ("attention", "TwiceAsLarge", "says that rows of its weights sum to 1, and they are off by 1.0e+00"),
    ("attention", "OtherWeights", "mixes with other weights than those of `weights`"),
    ("attention", "OtherHeads", "returns something else than the sum of its heads"),
    ("attention", "NoSquare", "`weights` returns (3, 3, 6, 6)\n  fix: it must return (3, 3, H, 6, 6)"),
    ("attention", "Failing", "raises AttributeError"),
    ("normaliser", "flat", "and has no `weights`"),
]


@pytest.mark.parametrize(("kind", "name", "what"), BAD, ids=lambda text: str(text)[:24])
def test_what_is_not_as_it_says_is_refused_in_two_lines(kind: str, name: str, what: str) -> None:
    with pytest.raises(Refused) as refused:
        try_component(kind, Component(name=f"mylab_provides:{name}"), Surroundings())
    said = str(refused.value)
    assert what in said and f"mylab_provides.py, {name})" in said and said.count("\n  fix: ") == 1


def test_what_is_as_it_says_passes() -> None:
    try_component("attention", Component(name="mylab_provides:Honest"), Surroundings())
