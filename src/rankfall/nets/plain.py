"""The plainest network: attention alone. What the studies build of their own begins with it and says what it has beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankfall.design import Architecture, Component

# By kind. A measure's BUILDS lists what else its networks are made of, so this is read by the plan too.
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


def attention_alone(name: str, **others: Any) -> Architecture:
    """Of one layer and head, norms after where there are any. Every field whose default could change is named."""
    parts: dict[str, Any] = {kind: Component(part) for kind, part in PLAIN.items()}
    return Architecture(
        **{"name": name, "norm_placement": "post", "depth": 1, "heads": 1, "width": 32, **parts, **others}
    )
