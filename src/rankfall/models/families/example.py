"""Example inputs of a model of the library: the kinds that its forward accepts, one after the other, until one runs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError, told

SAMPLES = 2
FAILURES = (
    RuntimeError, ValueError, TypeError, IndexError, AttributeError, NotImplementedError, KeyError, AssertionError, ImportError,
    ZeroDivisionError, UnboundLocalError,
)  # fmt: skip


def example_inputs(model: nn.Module, config: Any, *, tokens: int = 16, seed: int = 0) -> dict[str, Tensor]:
    """Keyword arguments on which the model runs; an error says what was tried."""
    generator = torch.Generator().manual_seed(seed)
    errors = []
    accepted = inspect.signature(model.forward).parameters
    off = {name: False for name in ("use_cache", "use_mems") if name in accepted}
    for inputs in candidates(model, config, tokens, generator):
        try:
            with torch.no_grad():
                model(**inputs, **off)
        except FAILURES as error:
            if isinstance(error, ImportError):
                raise RankfallError(told(error)) from error
            errors.append(f"{', '.join(inputs)}: {told(error, 100)}")
            continue
        return inputs
    raise RankfallError(
        f"{type(model).__name__} runs on none of the inputs that were tried: {'; '.join(errors[:3]) or 'none is known'}"
    )


def candidates(model: nn.Module, config: Any, tokens: int, generator: torch.Generator) -> Iterator[dict[str, Tensor]]:
    """Text, pictures, both, sound, states."""
    accepted = inspect.signature(model.forward).parameters
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    made: dict[str, Tensor] = {}
    if "input_ids" in accepted:
        special = {value for key, value in vars(text).items() if key.endswith("token_id") and isinstance(value, int)}
        special |= {value for key, value in vars(config).items() if "token" in key and isinstance(value, int)}
        size = int(getattr(text, "vocab_size", None) or getattr(config, "vocab_size", None) or 100)
        allowed = torch.tensor([one for one in range(3, size) if one not in special] or [1])
        ids = allowed[torch.randint(len(allowed), (SAMPLES, tokens), generator=generator)]
        made["input_ids"] = ids
        decoder = {"decoder_input_ids": ids.flip(1)} if "decoder_input_ids" in accepted else {}
        if "pixel_values" in accepted:
            for picture in pictures(config, generator):
                yield {**made, **decoder, "pixel_values": picture}
        yield {**made, **decoder}
        if "attention_mask" in accepted:
            yield {**made, **decoder, "attention_mask": torch.ones_like(ids)}
        if "bbox" in accepted:
            yield {**made, "bbox": torch.randint(0, 20, (SAMPLES, tokens, 4), generator=generator).sort(-1).values}
    if "pixel_values" in accepted:
        for picture in pictures(config, generator):
            yield {"pixel_values": picture}
            yield {"pixel_values": picture.unsqueeze(1).expand(-1, 4, -1, -1, -1)}
    for name in ("hidden_states", "pixel_values"):
        grid = next((key for key in ("grid_thw", "image_grid_thw") if key in accepted), None)
        if name in accepted and grid is not None:
            yield {name: patches(config, generator), grid: torch.tensor([[1, 4, 4]] * SAMPLES)}
    for name in ("input_values", "input_features", "hidden_states", "inputs_embeds", "audio_values", "inputs"):
        if name in accepted:
            for value in floats(name, config, tokens, generator):
                yield {name: value}
                if "decoder_input_ids" in accepted:
                    ids = torch.randint(3, 20, (SAMPLES, tokens), generator=generator)
                    yield {name: value, "decoder_input_ids": ids}


def pictures(config: Any, generator: torch.Generator) -> Iterator[Tensor]:
    part = getattr(config, "vision_config", None) or config
    sides = getattr(part, "image_size", None) or getattr(config, "image_size", None) or 64
    sides = list(sides.values()) if isinstance(sides, dict) else sides
    height, width = (sides, sides) if isinstance(sides, int) else (sides[0], sides[-1])
    channels = getattr(part, "num_channels", None) or 3
    yield torch.randn(SAMPLES, channels, height, width, generator=generator)
    if (height, width) != (64, 64):
        yield torch.randn(SAMPLES, channels, 64, 64, generator=generator)


def patches(config: Any, generator: torch.Generator) -> Tensor:
    """Patches of pictures, one after the other, as models that take pictures of all sizes read them: 4 x 4 a picture."""
    sizes = vars(config)
    channels = sizes.get("in_channels") or sizes.get("num_channels") or sizes.get("in_chans") or 3
    side, frames = sizes.get("patch_size") or 8, sizes.get("temporal_patch_size") or 1
    return torch.randn(SAMPLES * 16, channels * frames * side * side, generator=generator)


def floats(name: str, config: Any, tokens: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Sound as samples or as bands, and states."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    width = int(getattr(text, "hidden_size", None) or getattr(text, "d_model", None) or 32)
    bands = next(
        (int(value) for key in ("num_mel_bins", "input_feat_per_channel", "feature_size", "input_dim", "n_mels")
         if (value := getattr(config, key, None))), 80,
    )  # fmt: skip
    if name in ("hidden_states", "inputs_embeds", "inputs"):
        yield torch.randn(SAMPLES, tokens, width, generator=generator)
        return
    frames = 2 * int(getattr(config, "max_source_positions", 0) or 16)
    if name == "input_values":
        yield torch.randn(SAMPLES, 6400, generator=generator)
        yield torch.randn(SAMPLES, 1, 6400, generator=generator)
        yield torch.randn(SAMPLES, int(getattr(config, "max_length", 0) or 64), bands, generator=generator)
    yield torch.randn(SAMPLES, bands, frames, generator=generator)
    yield torch.randn(SAMPLES, 64, bands, generator=generator)
