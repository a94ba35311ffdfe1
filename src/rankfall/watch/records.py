"""The measurement of a pass, and its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError
from rankfall.watch.attention import AttentionListener
from rankfall.watch.states import MaskFunction, StatesFunction, call_mask_function, find_given_mask
from rankfall.watch.statistics import STATES, broken_samples, state_values


@dataclass(frozen=True)
class CaptureOptions:
    """Options of the measurement of a pass."""

    samples: int = 8
    batch_axis: int | None = None
    mask: MaskFunction | bool | None = None
    states: StatesFunction | None = None
    passes: str = "training"
    heads: bool = False  # whether to keep the numbers of each attention head


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
    input_shapes: list[torch.Size] = field(default_factory=list)  # first two axes of the model's input tensors
    loss: Tensor | None = None  # ()
    layers: list[LayerRecord] = field(default_factory=list)

    def read_inputs(
        self,
        module: nn.Module,
        args: Any,
        kwargs: Mapping[str, Any],
        mask: MaskFunction | bool | None,
        *,
        outermost: bool,
    ) -> None:
        """Read the padding of a pass, and the shapes of the inputs of the outermost module."""
        if callable(mask):
            self.real = call_mask_function(mask, args, kwargs) if outermost else self.real
        else:  # the innermost mask is the one for these blocks: an encoder's mask is not its decoder's
            specified, real = find_given_mask(module, args, kwargs)
            self.real = real if specified else self.real
        if outermost:
            self.input_shapes = [
                tensor.shape[:2]
                for tensor in (*args, *kwargs.values())
                if isinstance(tensor, Tensor) and tensor.ndim > 1
            ]


def layer_record(
    block: int | None,
    states: Tensor | None,
    listener: AttentionListener | None,
    record: PassRecord | None,
    options: CaptureOptions,
) -> LayerRecord:
    """Measure the states (B, T, D) of a layer, without padding."""
    weights, dead, queries = (
        (None, None, 0) if listener is None else (listener.values(), listener.dead, listener.queries)
    )
    if states is None:
        return LayerRecord(block, None, None, weights, dead, queries)
    real, padding = real_tokens(states, record, options)
    few = states[: options.samples]
    with torch.no_grad(), torch.autocast(states.device.type, enabled=False):
        values, kept = state_values(few, None if real is None else real[: options.samples])
        if len(states) > len(few):  # NaN of any sample spreads to the weights
            others = broken_samples(states[len(few) :], None if real is None else real[len(few) :])
            values[STATES.index("broken")] = torch.cat([values[STATES.index("broken")], others]).mean()
    samples, tokens, width = few.shape
    return LayerRecord(block, values, kept, weights, dead, queries, (samples, tokens, width), padding, states.dtype)


def real_tokens(states: Tensor, record: PassRecord | None, options: CaptureOptions) -> tuple[Tensor | None, str]:
    """Return the real tokens (B, T), or None for all, and the value of the column `padding`."""
    real = None if record is None else record.real
    if real is None:
        return None, "none"
    if real.shape != states.shape[:2]:
        if callable(options.mask):
            raise RankfallError(
                f"mask returns {tuple(real.shape)}, but states are (batch, tokens, width) {tuple(states.shape)}: it must be (batch, tokens)"
            )
        return None, "unknown"
    return real.to(states.device), "left out"
