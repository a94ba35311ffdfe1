"""Guards that what the shipped components cannot do is refused by the plan, and not by a job hours later."""

from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from plans import changed, refusal

from rankfall import components
from rankfall.models.source import PHASES
from rankfall.models.subject import DEFINITIONS
from rankfall.rank.orders import measure as orders
from rankfall.streams.variants import VARIANTS

REFUSED: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "no samples": ("task", "sorting", {"train": 0}, "train: 0 is out of range; allowed: >= 1"),
    "too few points": ("task", "circle", {"points": 0}, "points: 0 is out of range; allowed: >= 2"),
    "a negative shift": ("task", "convex_hull", {"shift": -1.0}, "shift: -1.0 is out of range; allowed: >= 0"),
    "a word of few": ("task", "circle", {"skip": "both"}, "skip: 'both' is not possible; allowed: none, step, published"),
    "none of a list": ("measure", "paths", {"counts": [0]}, "counts.0: 0 is out of range; allowed: >= 1"),
    "a phase": ("measure", "chains", {"model": "bert", "phase": "begin"}, "phase: 'begin' is not possible; allowed: init, pretrained"),
    "a variant": ("measure", "model_law", {"model": "bert", "variants": ["NAS"]}, "variants.0: 'NAS' is not possible; allowed: SAN"),
    "heads that do not divide": ("measure", "orders", {"heads": [1, 3]}, "heads: 3 heads do not divide the width 8; allowed: 1, 2, 4, 8"),
    "a width for the heads": ("measure", "orders", {"width": 7}, "width: 7 is not divisible by its 2 heads; choose `heads` too"),
    "an empty list": ("measure", "orders", {"heads": []}, "heads: [] has no entries; name some, or leave the key out for its default"),
    "a value twice": ("measure", "orders", {"heads": [1, 2, 1]}, "heads: 1 is there twice; take one out"),
    "an unknown component": ("measure", "orders", {"positions": ["nonee"]}, "positions.0: unknown position 'nonee'; allowed: "),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_options_that_cannot_work(case: str) -> None:
    kind, name, options, said = REFUSED[case]
    message = refusal(changed(f"{kind}s/own", {kind: name, **options}))
    assert message.startswith(f"{kind}s.own.{said}"), message


@pytest.mark.parametrize(("option", "value"), [("architectures", ["sann"]), ("task", "sort"), ("trainings", ["shrot"])])
def test_figures_show_what_there_is(option: str, value: Any) -> None:
    message = refusal(changed("figures", {"paths": {option: value}}))
    assert message.startswith(f"figures.paths.{option}: ") and "did you mean 's" in message


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
