"""The measurement of a pass, and its options."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from rankfall.watch.padding import MaskFunction
from rankfall.watch.states import StatesFunction


@dataclass(frozen=True)
class CaptureOptions:
    """Options of the measurement of a pass."""

    samples: int = 8
    batch_axis: int = 0
    mask: MaskFunction | bool | None = None
    states: StatesFunction | None = None
    passes: str = "training"
    automatic: bool = False  # whether layers are found where blocks do not return their states
    turned: bool = False  # whether to check that states have batch and tokens in the same order as the input


@dataclass
class LayerRecord:
    """The measurement of one layer in a pass, on the device."""

    block: int | None  # None: the input of the first
    states: Tensor | None  # (len(STATES), S)
    kept: Tensor | None = None  # (S', T', D), for the effective rank
    weights: Tensor | None = None  # (len(WEIGHTS), S, H)
    dead: Tensor | None = None  # share of dead units, ()
    queries: int = 0  # of a sample, whose attention weights are measured
    shape: tuple[int, int, int] = (0, 0, 0)  # (S, T, D)
    padding: str = "none"
    dtype: torch.dtype = torch.float32


@dataclass
class PassRecord:
    """The measurement of a pass. `kind` is 2 for a pass in training mode with gradients, 1 with gradients in eval mode, 0 without."""

    kind: int
    real: Tensor | None = None  # (B, T), from the mask of the call
    given: list[torch.Size] = field(default_factory=list)  # first two axes of the model's input tensors
    loss: Tensor | None = None  # ()
    layers: list[LayerRecord] = field(default_factory=list)
