"""Guards `rankfall.testing.check_component`: what anybody calls on a component of their own."""

import subprocess
import sys
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


@pytest.mark.parametrize(("kind", "name"), [("embedding", "token"), ("embedding", "linear"), ("norm", "layer")])
def test_components_of_the_package_pass_by_their_names(kind: str, name: str) -> None:
    check_component(kind, name)


def test_options_reach_it() -> None:
    check_component("normaliser", "mylab_good:tempered", {"temperature": 3.0})
    with pytest.raises(RankfallError, match=r"raises TypeError[^\n]*'temperatur'"):
        check_component("normaliser", "mylab_good:tempered", {"temperatur": 3.0})


def test_a_mistake_is_an_error_of_two_lines() -> None:
    with pytest.raises(RankfallError) as caught:
        check_component("normaliser", mylab_bad.mixes_members)
    found, fix = str(caught.value).splitlines()
    assert "mylab_bad.py, mixes_members) mixes the members" in found and fix.startswith("  fix: ")


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


def test_a_class_of_a_script_has_no_module_to_be_imported_from() -> None:
    text = "from rankfall.testing import check_component\nclass Mine: pass\ncheck_component('attention', Mine)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert "__main__:Mine cannot be imported\n  fix: " in done.stderr
