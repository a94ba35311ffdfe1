"""Compositions that components refuse, in words."""

from dataclasses import replace

import pytest

from rankfall.design import Architecture, Component
from rankfall.position.probe.measure import fits, refusal

DESIGN = Architecture(name="probed", position=Component("none"), depth=1, heads=1, width=2, mask=Component("causal"))


@pytest.mark.parametrize(
    ("wanted", "does"),
    [
        ({"mask": "causal"}, True),
        ({"mask": ("local", "causal")}, True),
        ({"mask": "local"}, False),
        ({"mask": "causal", "position": "none"}, True),
        ({"mask": "causal", "position": "rope"}, False),
    ],
)
def test_every_field_has_one_of_the_names(wanted: dict[str, object], does: bool) -> None:
    assert fits(DESIGN, wanted) is does
    assert not fits(replace(DESIGN, mask=None), wanted)


def test_a_position_that_an_attention_does_not_let_through_is_named() -> None:
    linear = replace(DESIGN, attention=Component("linear"))
    assert refusal(DESIGN) is None and refusal(linear) is None
    assert refusal(replace(linear, position=Component("learned"))) is None  # its vectors are in the states
    said = refusal(replace(linear, position=Component("toeplitz")))
    assert said == "position 'toeplitz' acts on scores, which attention 'linear' does not let it reach"
