"""Rows of a scorecard, made by hand: what the tests of its sentences and texts are about."""

from typing import Any

from rankfall.report.headlines import headlines
from rankfall.report.ranking import write_seeds

AT = {"task": "sorting", "training": "long", "trained": True, "width": 48, "heads": 2, "dtype": "float32"}
PARTS = ["block", "attention", "position", "residual", "norm", "norm_placement", "sentinels", "mlp"]


def row(architecture: str, depth: int = 6, **numbers: Any) -> dict[str, Any]:
    """Return a row of the scorecard; what is not given was not measured. Its three seeds have this mean and deviation."""
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
        if "__" not in name:
            one |= {name: value, f"{name}_reason": "", f"{name}_seeds": 3, f"{name}_of": 3}
            if value is not None:
                spread = numbers.get(f"{name}__deviation") or 0.0
                one[f"{name}_each"] = write_seeds({seed: value + spread * (seed - 1) for seed in range(3)})
            if f"{name}__chance" in numbers:
                one[f"{name}_chance_each"] = write_seeds(dict.fromkeys(range(3), numbers[f"{name}__chance"]))
    return one | {name.replace("__", "_"): value for name, value in numbers.items() if "__" in name}
