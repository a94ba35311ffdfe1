"""The plainest network: attention alone. Networks of the studies start from it and name the parts that they add."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankfall.design import Architecture, Component

# kind -> component. The plan reads this too, since a measure's BUILDS lists only the parts that its networks add.
PLAIN: Mapping[str, str] = {
    "block": "attention",
    "attention": "multihead",
    "normaliser": "softmax",
    "position": "none",
    "mask": "none",
    "residual": "none",
    "mlp": "none",
    "norm": "none",
    "embedding": "linear",
    "head": "regression",
    "sentinels": "none",
    "init": "normal",
}


def attention_alone(name: str, **changes: Any) -> Architecture:
    """Return an architecture of one attention layer with one head, post-norm if it has norms, with these changes.

    It sets every field whose default could change.
    """
    parts: dict[str, Any] = {kind: Component(part) for kind, part in PLAIN.items()}
    return Architecture(
        **{"name": name, "norm_placement": "post", "depth": 1, "heads": 1, "width": 32, **parts, **changes}
    )
