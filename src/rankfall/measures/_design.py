"""An architecture without a grid, for measures that make their own networks: the fields that `nets.network.build` reads."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from rankfall.nets.network import Network, Shape, build


@dataclass(frozen=True)
class Part:
    """A component: its name and options."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Design:
    """Fields as in the configuration, with attention alone as the default."""

    normaliser: Part = Part("softmax")
    position: Part = Part("none")
    mask: Part = Part("none")
    sentinels: Part = Part("none")
    residual: Part = Part("none")
    mlp_residual: Part | None = None
    mlp: Part = Part("none")
    norm: Part = Part("none")
    norm_placement: str = "post"
    depth: int = 1
    heads: int = 2
    width: int = 8
    head_width: int | None = None
    mlp_width: int | None = None
    block: Part = Part("attention")
    embedding: Part = Part("linear")
    head: Part = Part("regression")
    init: Part = Part("published")


Draw = Callable[[np.random.Generator, str, str, tuple[int, ...], int], np.ndarray]


def networks(design: Design, tokens: int, members: int, draw: Draw) -> Network:
    """`members` networks in float64 whose parameters `draw` draws; parameters of one name and shape are the same in every design."""
    shape = Shape("vectors", "values", length=tokens, size_in=1, size_out=1)
    made = build(design, shape, members, torch.float64)  # type: ignore[arg-type]
    made.init = draw
    made.initialise(list(range(members)))
    return made.requires_grad_(False)
