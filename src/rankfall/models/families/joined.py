"""Inputs that join the samples to one sequence, or have one axis more, by the names that a forward uses for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from rankfall.models.families.drawn import (
    FRAMES,
    GRID,
    SAMPLES,
    Inputs,
    drawn_tokens,
    pictures,
    squares,
    states,
    width_of,
)


def joined_inputs(accepted: Any, config: Any, tokens: int, generator: torch.Generator) -> Iterator[Inputs]:
    """Yield images or sounds of all samples in a row, images in tiles, tokens of several codebooks, and states of two kinds."""
    sizes = [[GRID, GRID]] * SAMPLES
    if "pixel_values" in accepted and "grid_thw" in accepted:  # [1, patches of all samples, channels, side, side]
        yield {
            "pixel_values": squares(config, generator).unsqueeze(0),
            "grid_thw": torch.tensor([[1, *size] for size in sizes]),
        }
    if "pixel_values" in accepted and "target_sizes" in accepted:
        yield {"pixel_values": in_a_row(squares(config, generator)), "target_sizes": torch.tensor(sizes)}
    # pixel_values (samples, pictures, tiles, channels, height, width)
    if "pixel_values" in accepted and "aspect_ratio_ids" in accepted:
        for picture in pictures(config, generator):
            for tiles in dict.fromkeys((1, int(getattr(config, "max_num_tiles", 1)))):
                yield {
                    "pixel_values": picture[:, None, None].repeat(1, 1, tiles, 1, 1, 1),
                    "aspect_ratio_ids": torch.ones(SAMPLES, 1, dtype=torch.long),
                    "aspect_ratio_mask": torch.ones(SAMPLES, 1, tiles, dtype=torch.long),
                }
    for name in ("image", "images"):
        if name in accepted:
            for picture in pictures(config, generator):
                yield {name: picture}
    if "input_features" in accepted and "feature_lens" in accepted:  # [bands, frames of all samples]
        bands = int(getattr(config, "num_mel_bins", 80))
        yield {
            "input_features": torch.randn(bands, SAMPLES * FRAMES, generator=generator),
            "feature_lens": torch.tensor([FRAMES] * SAMPLES),
        }
    count = next((int(value) for key in CODEBOOKS if isinstance(value := getattr(config, key, None), int)), 0)
    # not with images, where `num_channels` counts colours
    if "input_ids" in accepted and count and "pixel_values" not in accepted:
        ids = drawn_tokens(config, tokens * count, generator)
        yield {"input_ids": ids.view(SAMPLES, tokens, count)}
        few = {"input_ids": ids[:, :count]}  # one token per codebook
        yield few
        if "last_hidden_state" in accepted:
            yield {**few, "last_hidden_state": states(config, 1, generator)}
    if "audio_input_ids" in accepted and count:
        yield {"audio_input_ids": drawn_tokens(config, tokens * count, generator).view(SAMPLES, tokens, count)}
    if "vision_features" in accepted:
        text = {"text_features": states(config, tokens, generator)} if "text_features" in accepted else {}
        flat = states(config, GRID * GRID, generator)
        places = [name for name in ("vision_pos_embeds", "vision_pos_encoding") if name in accepted]
        shapes = {"spatial_shapes": torch.tensor([[GRID, GRID]])} if "spatial_shapes" in accepted else {}
        yield {"vision_features": flat, **text, **dict.fromkeys(places, flat), **shapes}
        levels = flat.transpose(1, 2).reshape(1, SAMPLES, width_of(config), GRID, GRID)  # one level
        yield {"vision_features": levels, **text, **dict.fromkeys(places, levels)}
    for name in ("patch_embeds", "latents", "backbone_features"):
        if name in accepted:
            flat = states(config, GRID * GRID, generator).transpose(1, 2)
            yield {name: flat}
            yield {name: flat.reshape(SAMPLES, -1, GRID, GRID)}


CODEBOOKS = ("num_codebooks", "n_codebooks", "num_quantizers", "num_channels")


def in_a_row(parts: Tensor) -> Tensor:
    """Join patches side by side: [patches, channels, side, side] -> [1, channels, side, patches * side]."""
    count, channels, side, _ = parts.shape
    return parts.permute(1, 2, 0, 3).reshape(1, channels, side, count * side)
