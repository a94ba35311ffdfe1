"""The plainest network: attention alone. Networks that the studies build start from it and name their additional parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankfall.design import Architecture, Component

# By kind. The plan reads this too, since a measure's BUILDS lists only the further parts of its networks.
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
    """Return an architecture of one attention layer with one head, post-norm if it has norms. It sets every field whose default could
    change.
    """
    parts: dict[str, Any] = {kind: Component(part) for kind, part in PLAIN.items()}
    return Architecture(
        **{"name": name, "norm_placement": "post", "depth": 1, "heads": 1, "width": 32, **parts, **others}
    )
