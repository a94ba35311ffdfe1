"""States and gradients of every mixer and block of the library: a number or a reason."""

import math
from typing import Any

import pytest
from helpers import needed
from one_stack import stack

from rankfall import components
from rankfall.rank.gradients.measure import gradients
from rankfall.rank.states.measure import states

WITHOUT = {"gau": {"queries", "keys"}}  # whose weights no layer has
KINDS: list[tuple[str, str]] = [
    (kind, name) for kind in ("attention", "block", "residual") for name in components.names(kind)
]


@pytest.mark.parametrize(("kind", "name"), KINDS)
def test_there_is_a_number_or_a_reason(kind: str, name: str) -> None:
    fields: dict[str, Any] = {"norm_placement": "pre", "mlp": "gelu"} | needed(kind, name) | {kind: name}
    found = components.describe(kind, name)
    wanted = [key for key, one in found.options.items() if one.required and key in ("scale", "start")] if found else []
    fields[kind] = {"name": name, **dict.fromkeys(wanted, 0.5)}
    context = stack(members=1, **fields)
    for measure in (states, gradients):
        rows = measure(context)
        assert all((row["value"] is None) == (row["value_reason"] != "") for row in rows)
        assert all(row["value"] is None or math.isfinite(row["value"]) for row in rows)
    lacking = {row["of"] for row in rows if "no weights of" in row["value_reason"]}
    assert lacking == WITHOUT.get(name, set())
