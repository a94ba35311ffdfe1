"""Guards that what the shipped components cannot do is refused by the plan, and not by a job hours later."""

from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from plans import changed, refusal

from rankfall import components
from rankfall.models.source import PHASES
from rankfall.models.subject import DEFINITIONS
from rankfall.models.variants import VARIANTS
from rankfall.rank.orders import measure as orders

TASKS: dict[str, list[tuple[str, Any, str]]] = {
    "sorting": [("train", 0, ">= 1"), ("test", 0, ">= 1"), ("length", 0, ">= 1"), ("symbols", 0, ">= 1")],
    "memorization": [("train", 0, ">= 1"), ("test", 0, ">= 1"), ("labels", 0, ">= 1"), ("vocabulary", 0, ">= 1")],
    "convex_hull": [("train", 0, ">= 1"), ("points", 0, ">= 1"), ("shift", -1.0, ">= 0")],
    "circle": [("points", 0, ">= 2"), ("batch", 0, ">= 1"), ("skip", "both", "allowed: none, step, published")],
}
MEASURES: dict[str, list[tuple[str, Any, str]]] = {
    "paths": [("counts", [0], ">= 1"), ("repeats", 0, ">= 1"), ("evaluation", ["thawed"], "recomputed, frozen")],
    "model_residuals": [
        ("phase", "begin", "init, pretrained"),
        ("seeds", 0, ">= 1"),
        ("variants", ["NAS"], "allowed: SAN"),
    ],
    "chains": [("repeats", 0, ">= 1"), ("phase", "begin", "init, pretrained")],
    "model_law": [("samples", 0, ">= 1"), ("variants", ["NAS"], "allowed: SAN")],
}


@pytest.mark.parametrize("name", TASKS)
def test_tasks(name: str) -> None:
    for option, value, why in TASKS[name]:
        message = refusal(changed("tasks/own", {"task": name, option: value}))
        assert message.startswith(f"tasks.own.{option}: ") and why in message


@pytest.mark.parametrize("name", MEASURES)
def test_measures(name: str) -> None:
    for option, value, why in MEASURES[name]:
        options = {} if name == "paths" else {"model": "bert"}
        message = refusal(changed("measures/own", {"measure": name, **options, option: value}))
        place = f"{option}.0" if isinstance(value, list) and isinstance(value[0], str) else option
        assert message.startswith(f"measures.own.{place}: ") and why in message


@pytest.mark.parametrize(("option", "value"), [("architectures", ["sann"]), ("task", "sort"), ("trainings", ["shrot"])])
def test_figures_show_what_there_is(option: str, value: Any) -> None:
    message = refusal(changed("figures", {"paths": {option: value}}))
    assert message.startswith(f"figures.paths.{option}: ") and "did you mean 's" in message


def test_figures_need_no_names_of_the_default_configuration() -> None:
    """Their defaults are what was measured, whatever it is called."""
    for name in components.names("figure"):
        options = components.describe("figure", name).options  # type: ignore[union-attr]
        named = {
            key: options[key].default for key in ("task", "architecture", "training", "architectures") if key in options
        }
        assert not any(named.values()), name


def test_choices_are_those_of_the_code() -> None:
    """They are written out in signatures, which are read without running anything."""
    (block,) = get_args(hints_of("orders")["blocks"])
    assert list(get_args(block)) == list(orders.BLOCKS)
    documented = (Path(__file__).parents[3] / "docs" / "components" / "theory.md").read_text()
    assert all(f"`{name}`" in documented for name in orders.BLOCKS)
    hints = hints_of("model_residuals")
    assert get_args(hints["phase"]) == PHASES
    assert get_args(hints["definition"]) == DEFINITIONS
    (listed, _) = get_args(hints["variants"])
    assert set(get_args(get_args(listed)[0])) == set(VARIANTS)
    assert hints_of("model_law")["variants"] == hints["variants"]


def hints_of(measure: str) -> dict[str, Any]:
    """Measures import the type of their context for type checkers only."""
    return get_type_hints(components.load("measure", measure), localns={"Context": Any})
