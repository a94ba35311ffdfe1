"""Inputs that replace the random draws of a model which draws in every pass, even in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from rankfall.models.families.drawn import GRID, SAMPLES, Inputs, as_whole, width_of


def draws(model: nn.Module, inputs: Inputs, off: dict[str, bool]) -> bool:
    """Return whether a pass advances the random number generator."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        before = torch.get_rng_state()
        model(**inputs, **off)
        return not torch.equal(before, torch.get_rng_state())


def without_draws(inputs: Inputs, accepted: Any, config: Any, generator: torch.Generator) -> Iterator[Inputs]:
    """Yield the inputs with explicit noise, or with image embeddings in place of images whose patches the model picks at random."""
    picture = inputs.get("pixel_values")
    side = as_whole(getattr(config, "patch_size", None))
    if "noise" in accepted and picture is not None and side:  # one number per patch decides which patches are hidden
        count = picture.shape[-1] // side * (picture.shape[-2] // side)
        yield {**inputs, "noise": torch.rand(len(picture), count, generator=generator)}
    if "image_embeds" in accepted and "pixel_mask" in accepted and picture is not None:
        kept = {name: value for name, value in inputs.items() if name != "pixel_values"}
        embeds = torch.randn(SAMPLES, GRID * GRID, width_of(config), generator=generator)
        yield {**kept, "image_embeds": embeds, "pixel_mask": torch.ones(SAMPLES, GRID * GRID, dtype=torch.long)}
