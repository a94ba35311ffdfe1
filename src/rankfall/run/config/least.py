"""What options of measures and figures are at least, by their names: of no seeds, no tokens or no heads there is nothing to compute, and a
job would say so after hours, or draw nothing. A component says otherwise by its LIMITS.
"""

from collections.abc import Container, Mapping
from typing import Any

from rankfall.run.config.problems import problem

LEAST = dict.fromkeys(
    ("batch", "columns", "depth", "depths", "directions", "draws", "heads", "hidden", "items", "length", "lengths", "most", "pairs",
     "repeats", "samples", "seeds", "steps", "streams", "symbols", "tested", "tokens", "vocabulary", "width", "widths"),
    1,
) | {"lr": 0, "rate": 0}  # fmt: skip


def check_heads(options: Mapping[str, Any], written: Container[str], path: str) -> None:
    """That the heads of a measure's own networks divide their width."""
    width, heads = options.get("width"), options.get("heads")
    if type(width) is not int or "head_width" in options:
        return
    for count in heads if isinstance(heads, list) else [heads]:
        if type(count) is int and width % count:
            divisors = [str(one) for one in range(1, width + 1) if width % one == 0]
            if "heads" in written:
                what = f"{count} heads do not divide the width {width}"
                raise problem(f"{path}.heads", what, allowed=divisors, hint="or choose another width")
            raise problem(f"{path}.width", f"{width} is not divided by its {count} heads", hint="choose `heads` too")
