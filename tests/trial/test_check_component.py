"""Guards `rankfall.testing.check_component`: what anybody calls on a component of their own."""

from typing import Any

import mylab_bad  # type: ignore[import-not-found]
import mylab_plain  # type: ignore[import-not-found]
import pytest

from rankfall.errors import RankfallError
from rankfall.testing import check_component


@pytest.mark.parametrize("network", [{}, {"width": 48, "heads": 6, "head_width": 8, "tokens": 33}])
@pytest.mark.parametrize("component", [mylab_plain.Plain, "mylab_plain:Plain"], ids=["class", "name"])
def test_a_plain_attention_without_declarations_passes(component: Any, network: dict[str, Any]) -> None:
    check_component("attention", component, **network)


def test_a_mistake_is_an_error_of_two_lines() -> None:
    with pytest.raises(RankfallError) as caught:
        check_component("normaliser", mylab_bad.mixes_members)
    found, fix = str(caught.value).splitlines()
    assert "mylab_bad.py, mixes_members) mixes the members" in found and fix.startswith("  fix: ")


def test_a_maximum_over_the_stack_that_a_causal_mask_hides_is_refused() -> None:
    check_component("attention", mylab_bad.SharedMaximum, masked=True)
    with pytest.raises(RankfallError, match="mixes the members of a stack"):
        check_component("attention", mylab_bad.SharedMaximum)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("normalizer", "softmax"),
            "'normalizer' is not a kind of component that can be checked; did you mean 'normaliser'?",
        ),
        (("norm", "layer", None, {"widht": 3}), "'widht' is not a size of a network"),
        (("norm", "laier"), "laier"),
    ],
)
def test_what_cannot_be_checked_says_why(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(RankfallError) as caught:
        check_component(*arguments[:3], **(arguments[3] if len(arguments) > 3 else {}))
    assert said in str(caught.value)
