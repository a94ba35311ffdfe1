"""Random inputs of a model, of the sizes in its configuration: tokens, images, video, sound, states, time series, games.

`joined_inputs` joins the samples to one sequence, or adds an axis, by the names that a forward uses for such inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch import Tensor

SAMPLES = 2
GRID = 4  # patches along each side of an image
FRAMES = 64  # time steps of sound and series
PLACES = 2  # coordinates in front of a patch: its row and column
Inputs = dict[str, Tensor]


def drawn_tokens(config: Any, tokens: int, generator: torch.Generator) -> Tensor:
    """Draw token numbers, leaving out special tokens."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    special = {value for key, value in vars(text).items() if key.endswith("token_id") and isinstance(value, int)}
    special |= {value for key, value in vars(config).items() if "token" in key and isinstance(value, int)}
    size = int(getattr(text, "vocab_size", None) or getattr(config, "vocab_size", None) or 100)
    allowed = torch.tensor([token for token in range(3, size) if token not in special] or [1])
    return allowed[torch.randint(len(allowed), (SAMPLES, tokens), generator=generator)]


def pictures(config: Any, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield images of the configured size, then of usual sizes."""
    part = getattr(config, "vision_config", None) or config
    sides = getattr(part, "image_size", None) or getattr(config, "image_size", None) or 64
    sides = list(sides.values()) if isinstance(sides, dict) else sides
    height, width = (sides, sides) if isinstance(sides, int) else (sides[0], sides[-1])
    channels = getattr(part, "num_channels", None) or getattr(part, "in_channels", None) or 3
    yield torch.randn(SAMPLES, channels, height, width, generator=generator)
    for side in {64, 128} - {height}:
        yield torch.randn(SAMPLES, 3, side, side, generator=generator)


def clips(config: Any, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield video clips with the number of frames that the configuration names, then with 2, 4 and 8."""
    part = getattr(config, "vision_config", None) or config
    names = ("num_frames", "frames_per_clip", "num_image_frames")
    counts = [int(value) for name in names if isinstance(value := getattr(part, name, None), int)]
    for picture in islice(pictures(config, generator), 1):
        for count in dict.fromkeys([*counts, 2, 4, 8]):
            yield picture.unsqueeze(1).expand(-1, count, -1, -1, -1).contiguous()


def patches(config: Any, generator: torch.Generator) -> Tensor:
    """Draw the patches of all images in one sequence, 4 x 4 per image, as models for images of any size read them."""
    sizes = vars(config)
    channels = next(
        (count for key in ("in_channels", "num_channels", "in_chans") if (count := as_whole(sizes.get(key)))), 3
    )
    side, frames = as_whole(sizes.get("patch_size")) or 8, as_whole(sizes.get("temporal_patch_size")) or 1
    return torch.randn(SAMPLES * GRID * GRID, channels * frames * side * side, generator=generator)


def as_whole(value: Any) -> int | None:
    """Return an integer, or the first entry of a list; None if that is not an integer."""
    first = value[0] if isinstance(value, list | tuple) and value else value
    return first if isinstance(first, int) else None


def squares(config: Any, generator: torch.Generator) -> Tensor:
    """Draw patches as small images."""
    flat = patches(config, generator)
    side = as_whole(vars(config).get("patch_size")) or 8
    return flat.view(len(flat), -1, side, side)


def in_rows(config: Any, generator: torch.Generator) -> Inputs:
    """Draw patches with one row per sample, and the shape of the images that they come from."""
    part = getattr(config, "vision_config", None) or config
    return {
        "pixel_values": patches(part, generator).view(SAMPLES, GRID * GRID, -1),
        "pixel_attention_mask": torch.ones(SAMPLES, GRID * GRID, dtype=torch.long),
        "spatial_shapes": torch.tensor([[GRID, GRID]] * SAMPLES),
    }


def draw_patches(config: Any, generator: torch.Generator) -> Tensor:
    """Draw patches with one row per sample, each patch preceded by its row and column, counted from 1."""
    flat = in_rows(config, generator)["pixel_values"]
    return torch.cat([patch_places(1.0), flat], -1)


def patch_places(first: float) -> Tensor:
    """Return row and column of each patch, counted from `first`, (SAMPLES, GRID * GRID, 2)."""
    side = torch.arange(first, first + GRID)
    return torch.cartesian_prod(side, side).expand(SAMPLES, -1, -1)


def width_of(config: Any) -> int:
    """Return the width of the text model's states."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    return int(getattr(text, "hidden_size", None) or getattr(text, "d_model", None) or 32)


def states(config: Any, tokens: int, generator: torch.Generator) -> Tensor:
    """Draw states (SAMPLES, tokens, width)."""
    return torch.randn(SAMPLES, tokens, width_of(config), generator=generator)


def sounds(name: str, config: Any, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield sound as a waveform, as bands by time and as time by bands."""
    names = ("num_mel_bins", "input_feat_per_channel", "feature_size", "input_dim", "n_mels", "input_feat_size")
    parts = [config, *(getattr(config, key, None) for key in ("audio_config", "encoder_config"))]
    bands = next((int(value) for part in parts for key in names if (value := getattr(part, key, None))), 80)
    if name != "input_features":
        for length in (6400, 9600):
            yield torch.randn(SAMPLES, length, generator=generator)
            yield torch.randn(SAMPLES, 1, length, generator=generator)
        yield torch.randn(SAMPLES, int(getattr(config, "max_length", 0) or FRAMES), bands, generator=generator)
    frames = 2 * int(getattr(config, "max_source_positions", 0) or FRAMES // 2)
    yield torch.randn(SAMPLES, bands, frames, generator=generator)
    window = getattr(config, "n_window", None)
    if isinstance(window, int) and FRAMES % (2 * window):  # whole windows
        yield torch.randn(SAMPLES, bands, 2 * window, generator=generator)
    yield torch.randn(SAMPLES, FRAMES, bands, generator=generator)
    yield torch.randn(SAMPLES, 1, FRAMES, bands, generator=generator)


def series(accepted: Any, config: Any, generator: torch.Generator) -> Iterator[Inputs]:
    """Yield time series, the last with time features and masks."""
    length = int(getattr(config, "context_length", None) or 32)
    ahead = int(getattr(config, "prediction_length", None) or 8)
    for sizes in ((length, int(getattr(config, "num_input_channels", 1) or 1)), (length,), (FRAMES,)):
        yield {"past_values": torch.randn(SAMPLES, *sizes, generator=generator)}
    longer = length + max(getattr(config, "lags_sequence", None) or [0])
    features = int(getattr(config, "num_time_features", 0) or 0)
    inputs = {
        "past_values": torch.randn(SAMPLES, longer, generator=generator),
        "past_time_features": torch.randn(SAMPLES, longer, features, generator=generator),
        "past_observed_mask": torch.ones(SAMPLES, longer),
        "future_values": torch.randn(SAMPLES, ahead, generator=generator),
        "future_time_features": torch.randn(SAMPLES, ahead, features, generator=generator),
    }
    yield {name: value for name, value in inputs.items() if name in accepted}


def draw_game(config: Any, generator: torch.Generator) -> Inputs:
    """Draw a game: states, actions and rewards."""
    steps = 6
    return {
        "states": torch.randn(SAMPLES, steps, config.state_dim, generator=generator),
        "actions": torch.randn(SAMPLES, steps, config.act_dim, generator=generator),
        "rewards": torch.randn(SAMPLES, steps, 1, generator=generator),
        "returns_to_go": torch.randn(SAMPLES, steps, 1, generator=generator),
        "timesteps": torch.arange(steps).expand(SAMPLES, -1),
        "attention_mask": torch.ones(SAMPLES, steps, dtype=torch.long),
    }


def joined_inputs(accepted: Any, config: Any, tokens: int, generator: torch.Generator) -> Iterator[Inputs]:
    """Yield images or sounds of all samples in a row, images in tiles, tokens of several codebooks, and states of two kinds."""
    sizes = [[GRID, GRID]] * SAMPLES
    if "pixel_values" in accepted and "grid_thw" in accepted:  # [1, patches of all samples, channels, side, side]
        grids = torch.tensor([[1, *size] for size in sizes])
        yield {"pixel_values": squares(config, generator).unsqueeze(0), "grid_thw": grids}
    if "pixel_values" in accepted and "target_sizes" in accepted:
        side_by_side = squares(config, generator).permute(1, 2, 0, 3).flatten(2)  # [channels, side, patches * side]
        yield {"pixel_values": side_by_side.unsqueeze(0), "target_sizes": torch.tensor(sizes)}
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
