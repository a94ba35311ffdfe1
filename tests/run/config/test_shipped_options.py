"""Guards that what the shipped components cannot do is refused by the plan, and not by a job hours later."""

from typing import Any

import pytest
from plans import changed, refusal

REFUSED: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "no samples": ("task", "sorting", {"train": 0}, "train: 0 is out of range; allowed: >= 1"),
    "too few points": ("task", "circle", {"points": 0}, "points: 0 is out of range; allowed: >= 2"),
    "a negative shift": ("task", "convex_hull", {"shift": -1.0}, "shift: -1.0 is out of range; allowed: >= 0"),
    "a word of few": ("task", "circle", {"skip": "both"}, "skip: 'both' is not possible; allowed: none, step, published"),
    "none of a list": ("measure", "paths", {"counts": [0]}, "counts.0: 0 is out of range; allowed: >= 1"),
    "a phase": ("measure", "chains", {"model": "bert", "phase": "begin"}, "phase: 'begin' is not possible; allowed: init, pretrained"),
    "a variant": ("measure", "model_law", {"model": "bert", "variants": ["NAS"]}, "variants.0: 'NAS' is not possible; allowed: SAN"),
    "no network": ("measure", "law", {"samples": 0}, "samples: 0 is out of range; allowed: >= 1"),
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
