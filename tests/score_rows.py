"""Rows of a scorecard, made by hand: what the tests of its sentences and texts are about."""

from typing import Any

from rankfall.report.headlines import headlines

AT = {"task": "sorting", "training": "long", "trained": True, "width": 48, "heads": 2, "dtype": "float32"}
PARTS = ["block", "attention", "position", "residual", "norm", "norm_placement", "sentinels", "mlp"]


def row(architecture: str, depth: int = 6, **numbers: Any) -> dict[str, Any]:
    """A row of the scorecard; what is not given was not measured."""
    one: dict[str, Any] = {
        "architecture": architecture,
        "variant": "",
        "setting": f"sorting, long, depth {depth}",
        "depth": depth,
        **AT,
    }
    one |= dict.fromkeys(PARTS, "none") | {"cells": 3, "done": 3}
    for headline in headlines():
        one |= {f"{headline.name}_reason": "not measured"} | (
            {} if headline.components else {f"{headline.name}_lost": ""}
        )
    for name, value in numbers.items():
        one |= {name: value, f"{name}_reason": "", f"{name}_seeds": 3, f"{name}_of": 3} if not name.count("__") else {}
    return one | {name.replace("__", "_"): value for name, value in numbers.items() if "__" in name}
