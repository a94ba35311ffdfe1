"""Example inputs of a model of the library: the kinds that its forward accepts, one after the other, until one runs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError, told

SAMPLES, GRID, FRAMES = 2, 4, 64
Inputs = dict[str, Tensor]
FAILURES = (
    RuntimeError, ValueError, TypeError, IndexError, AttributeError, NotImplementedError, KeyError, AssertionError, ImportError,
    ZeroDivisionError, NameError,
)  # fmt: skip
# what is given and what is wanted of the last axis, or of the second
MISFITS = (
    (re.compile(r"mat1 and mat2 shapes cannot be multiplied \(\d+x(?P<given>\d+) and (?P<wanted>\d+)x\d+\)"), -1),
    (
        re.compile(
            r"expected input with shape \[\*, (?P<wanted>\d+)\], but got input of size\s*\[(?:\d+, )*(?P<given>\d+)\]"
        ),
        -1,
    ),
    (re.compile(r"expected input\[\d+, (?P<given>\d+)[\d, ]*\] to have (?P<wanted>\d+) channels"), 1),
)
GIVEN = (
    "input_values", "input_features", "audio_values", "audio_mel", "hidden_states", "inputs_embeds", "inputs", "context", "patch_embeds",
)  # fmt: skip
MOST_ADDED = 40  # attempts with one more input


def example_inputs(model: nn.Module, config: Any, *, tokens: int = 16, seed: int = 0, thorough: bool = True) -> Inputs:
    """Keyword arguments on which the model runs; an error says what was tried. `thorough`: inputs that may be left out are tried too."""
    generator = torch.Generator().manual_seed(seed)
    accepted = inspect.signature(model.forward).parameters
    off = {name: False for name in ("use_cache", "use_mems") if name in accepted}
    errors: list[str] = []
    tried: list[Inputs] = []
    for plain in candidates(accepted, config, tokens, generator):
        tried.append(completed(plain, accepted, config, tokens, generator))
        found = running(model, tried[-1], off, generator, errors)
        if found is not None:
            return found
    for inputs in islice(with_one_more(tried, accepted, config, tokens, generator), MOST_ADDED if thorough else 0):
        found = running(model, inputs, off, generator, errors)
        if found is not None:
            return found
    raise RankfallError(
        f"{type(model).__name__} runs on none of the inputs that were tried: {'; '.join(errors[:3]) or 'none is known'}"
    )


def running(
    model: nn.Module, inputs: Inputs, off: dict[str, bool], generator: torch.Generator, errors: list[str]
) -> Inputs | None:
    """The inputs, maybe with another number of features, if the model runs on them; else None, and an error more."""
    for _ in range(3):
        try:
            with torch.no_grad():
                model(**inputs, **off)
            return inputs
        except ImportError as error:
            raise RankfallError(told(error)) from error
        except FAILURES as error:
            errors.append(f"{', '.join(inputs)}: {told(error, 100)}")
            wider = fitted(inputs, str(error), generator)
        if wider is None:
            return None
        inputs = wider
    return None


def fitted(inputs: Inputs, error: str, generator: torch.Generator) -> Inputs | None:
    """The same with as many features as a map has just said that it takes."""
    for pattern, axis in MISFITS:
        found = pattern.search(error)
        if found is None:
            continue
        for name, value in inputs.items():
            if value.is_floating_point() and value.dim() > 1 and value.shape[axis] == int(found["given"]):
                shape = list(value.shape)
                shape[axis] = int(found["wanted"])
                return {**inputs, name: torch.randn(shape, generator=generator)}
    return None


def with_one_more(
    tried: list[Inputs], accepted: Any, config: Any, tokens: int, generator: torch.Generator
) -> Iterator[Inputs]:
    """What failed, with one of the inputs that may be left out, or with all that are not."""
    for inputs in tried:
        more = {
            name: value
            for name, parameter in accepted.items()
            if name not in inputs and parameter.default is not parameter.empty
            and (value := guessed(name, inputs, config, tokens, generator)) is not None
        }  # fmt: skip
        for name, value in more.items():
            yield {**inputs, name: value}
        if len(more) > 1 and "inputs_embeds" not in more:
            yield {**inputs, **more}


def guessed(name: str, inputs: Inputs, config: Any, tokens: int, generator: torch.Generator) -> Tensor | None:
    """An input by its name, that fits what is given; None for what its name does not say."""
    length = next((value.shape[1] for value in inputs.values() if value.dim() == 2), tokens)
    frames = next((value.shape[-1] for value in inputs.values() if value.dim() == 3), length)
    if "mask" in name and "bool" not in name:
        return torch.ones(SAMPLES, frames if "feature" in name or "audio" in name else length, dtype=torch.long)
    if name.endswith("input_ids"):
        return drawn_tokens(config, length, generator)
    if name in ("encoder_hidden_states", "patch_embeds", "inputs_embeds", "context", "hidden_states"):
        return states(config, length, generator)
    if name.endswith(("token_type_ids", "position_ids")):
        return torch.zeros(SAMPLES, length, dtype=torch.long)
    if name in ("lang_ids", "language_ids", "freq", "speaker_ids", "num_delay_tokens"):
        return torch.zeros(SAMPLES, dtype=torch.long)
    if name.endswith("input_values"):
        return torch.randn(SAMPLES, length, 80, generator=generator)
    if name == "past_values_padding":
        return torch.zeros(SAMPLES, length)
    if name == "bbox":
        return torch.randint(0, 20, (SAMPLES, length, 4), generator=generator).sort(-1).values
    return None


def candidates(accepted: Any, config: Any, tokens: int, generator: torch.Generator) -> Iterator[Inputs]:
    """Text, pictures, both, sound, states, series."""
    grid = next((key for key in ("grid_thw", "image_grid_thw") if key in accepted), None)
    for name in ("hidden_states", "pixel_values"):
        if name in accepted and grid is not None and "input_ids" not in accepted:
            yield {name: patches(config, generator), grid: torch.tensor([[1, GRID, GRID]] * SAMPLES)}
    if grid is not None and "pixel_values" in accepted and "input_ids" not in accepted:
        yield {"pixel_values": squares(config, generator), grid: torch.tensor([[1, GRID, GRID]] * SAMPLES)}
    if "input_ids" in accepted:
        ids = drawn_tokens(config, tokens, generator)
        made = {"input_ids": ids}
        if "spatial_shapes" in accepted:
            yield {**made, **in_rows(config, generator)}
        decoder = {"decoder_input_ids": ids.flip(1)} if "decoder_input_ids" in accepted else {}
        if "pixel_values" in accepted:
            for picture in pictures(config, generator):
                yield {**made, **decoder, "pixel_values": picture}
                yield {**made, **decoder, "pixel_values": picture.unsqueeze(1)}
        for name in ("input_features", "input_values"):
            for value in sounds(name, config, generator) if name in accepted else ():
                yield {**made, name: value}
        yield {**made, **decoder}
        if "attention_mask" in accepted:
            yield {**made, **decoder, "attention_mask": torch.ones_like(ids)}
        if "bbox" in accepted:
            yield {**made, "bbox": torch.randint(0, 20, (SAMPLES, tokens, 4), generator=generator).sort(-1).values}
    if "pixel_values" in accepted:
        for picture in pictures(config, generator):
            yield {"pixel_values": picture}
            for count in (2, 4):  # pairs, and frames
                yield {"pixel_values": picture.unsqueeze(1).expand(-1, count, -1, -1, -1)}
    text = {"input_ids": drawn_tokens(config, tokens, generator)} if "input_ids" in accepted else {}
    for name in ("pixel_values_videos", "pixel_values"):
        for clip in clips(config, generator) if name in accepted else ():
            yield {**text, name: clip}
    if "spectrogram" in accepted:
        yield {"spectrogram": next(iter(sounds("input_features", config, generator))).transpose(1, 2)}
    for name in GIVEN:
        if name in accepted:
            drawn = (
                states(config, tokens, generator)
                if name == "hidden_states" or "embeds" in name or name in ("inputs", "context")
                else None
            )
            for value in [drawn] if drawn is not None else sounds(name, config, generator):
                yield {name: value}
                if "decoder_input_ids" in accepted:
                    yield {name: value, "decoder_input_ids": drawn_tokens(config, tokens, generator)}
    for name in ("pixel_values", "hidden_states"):
        if name in accepted:
            yield {name: patches(config, generator).view(SAMPLES, GRID * GRID, -1)}
            yield {name: next(pictures(config, generator))}
    if "decoder_input_ids" in accepted and "pixel_values" in accepted:
        for picture in pictures(config, generator):
            yield {"pixel_values": picture, "decoder_input_ids": drawn_tokens(config, tokens, generator)}
    if "past_values" in accepted:
        yield from series(accepted, config, generator)
    if "query_embeds" in accepted:
        yield {"query_embeds": states(config, tokens, generator)}
    if "returns_to_go" in accepted:
        yield played(config, generator)


def drawn_tokens(config: Any, tokens: int, generator: torch.Generator) -> Tensor:
    """Numbers of tokens that mean nothing special."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    special = {value for key, value in vars(text).items() if key.endswith("token_id") and isinstance(value, int)}
    special |= {value for key, value in vars(config).items() if "token" in key and isinstance(value, int)}
    size = int(getattr(text, "vocab_size", None) or getattr(config, "vocab_size", None) or 100)
    allowed = torch.tensor([one for one in range(3, size) if one not in special] or [1])
    return allowed[torch.randint(len(allowed), (SAMPLES, tokens), generator=generator)]


def pictures(config: Any, generator: torch.Generator) -> Iterator[Tensor]:
    part = getattr(config, "vision_config", None) or config
    sides = getattr(part, "image_size", None) or getattr(config, "image_size", None) or 64
    sides = list(sides.values()) if isinstance(sides, dict) else sides
    height, width = (sides, sides) if isinstance(sides, int) else (sides[0], sides[-1])
    channels = getattr(part, "num_channels", None) or getattr(part, "in_channels", None) or 3
    yield torch.randn(SAMPLES, channels, height, width, generator=generator)
    for side in {64, 128} - {height}:
        yield torch.randn(SAMPLES, 3, side, side, generator=generator)


def clips(config: Any, generator: torch.Generator) -> Iterator[Tensor]:
    """Pictures one after the other, as many as the configuration names."""
    part = getattr(config, "vision_config", None) or config
    names = ("num_frames", "frames_per_clip", "num_image_frames")
    counts = [int(value) for name in names if isinstance(value := getattr(part, name, None), int)]
    for picture in islice(pictures(config, generator), 1):
        for count in dict.fromkeys([*counts, 2, 4, 8]):
            yield picture.unsqueeze(1).expand(-1, count, -1, -1, -1).contiguous()


def patches(config: Any, generator: torch.Generator) -> Tensor:
    """Patches of pictures, one after the other, as models that take pictures of all sizes read them: 4 x 4 a picture."""
    sizes = vars(config)
    channels = next((one for key in ("in_channels", "num_channels", "in_chans") if (one := whole(sizes.get(key)))), 3)
    side, frames = whole(sizes.get("patch_size")) or 8, whole(sizes.get("temporal_patch_size")) or 1
    return torch.randn(SAMPLES * GRID * GRID, channels * frames * side * side, generator=generator)


def whole(value: Any) -> int | None:
    """A number, or the first of a list of them."""
    first = value[0] if isinstance(value, list | tuple) and value else value
    return first if isinstance(first, int) else None


def squares(config: Any, generator: torch.Generator) -> Tensor:
    """The same patches as small pictures."""
    flat = patches(config, generator)
    side = whole(vars(config).get("patch_size")) or 8
    return flat.view(len(flat), -1, side, side)


def in_rows(config: Any, generator: torch.Generator) -> Inputs:
    """Patches in rows of a sample each, with the shape of the pictures that they are of."""
    part = getattr(config, "vision_config", None) or config
    return {
        "pixel_values": patches(part, generator).view(SAMPLES, GRID * GRID, -1),
        "pixel_attention_mask": torch.ones(SAMPLES, GRID * GRID, dtype=torch.long),
        "spatial_shapes": torch.tensor([[GRID, GRID]] * SAMPLES),
    }


def width_of(config: Any) -> int:
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    return int(getattr(text, "hidden_size", None) or getattr(text, "d_model", None) or 32)


def states(config: Any, tokens: int, generator: torch.Generator) -> Tensor:
    return torch.randn(SAMPLES, tokens, width_of(config), generator=generator)


def sounds(name: str, config: Any, generator: torch.Generator) -> Iterator[Tensor]:
    """Sound as samples, and as bands by time or time by bands."""
    names = ("num_mel_bins", "input_feat_per_channel", "feature_size", "input_dim", "n_mels")
    parts = [config, *(getattr(config, one, None) for one in ("audio_config", "encoder_config"))]
    bands = next((int(value) for part in parts for key in names if (value := getattr(part, key, None))), 80)
    if name != "input_features":
        for length in (6400, 9600):
            yield torch.randn(SAMPLES, length, generator=generator)
            yield torch.randn(SAMPLES, 1, length, generator=generator)
        yield torch.randn(SAMPLES, int(getattr(config, "max_length", 0) or FRAMES), bands, generator=generator)
    frames = 2 * int(getattr(config, "max_source_positions", 0) or FRAMES // 2)
    yield torch.randn(SAMPLES, bands, frames, generator=generator)
    yield torch.randn(SAMPLES, FRAMES, bands, generator=generator)
    yield torch.randn(SAMPLES, 1, FRAMES, bands, generator=generator)


def series(accepted: Any, config: Any, generator: torch.Generator) -> Iterator[Inputs]:
    """Series of numbers, with what is known of their times."""
    length, ahead = (
        int(getattr(config, "context_length", None) or 32),
        int(getattr(config, "prediction_length", None) or 8),
    )
    yield {
        "past_values": torch.randn(
            SAMPLES, length, int(getattr(config, "num_input_channels", 1) or 1), generator=generator
        )
    }
    yield {"past_values": torch.randn(SAMPLES, length, generator=generator)}
    longer = length + max(getattr(config, "lags_sequence", None) or [0])
    features = int(getattr(config, "num_time_features", 0) or 0)
    given = {
        "past_values": torch.randn(SAMPLES, longer, generator=generator),
        "past_time_features": torch.randn(SAMPLES, longer, features, generator=generator),
        "past_observed_mask": torch.ones(SAMPLES, longer),
        "future_values": torch.randn(SAMPLES, ahead, generator=generator),
        "future_time_features": torch.randn(SAMPLES, ahead, features, generator=generator),
    }
    yield {name: value for name, value in given.items() if name in accepted}


def played(config: Any, generator: torch.Generator) -> Inputs:
    """A game: states, actions and what they brought."""
    steps = 6
    return {
        "states": torch.randn(SAMPLES, steps, config.state_dim, generator=generator),
        "actions": torch.randn(SAMPLES, steps, config.act_dim, generator=generator),
        "rewards": torch.randn(SAMPLES, steps, 1, generator=generator),
        "returns_to_go": torch.randn(SAMPLES, steps, 1, generator=generator),
        "timesteps": torch.arange(steps).expand(SAMPLES, -1),
        "attention_mask": torch.ones(SAMPLES, steps, dtype=torch.long),
    }


def completed(inputs: Inputs, accepted: Any, config: Any, tokens: int, generator: torch.Generator) -> Inputs:
    """With what else has to be given: masks that hide nothing, other texts, places of pictures."""
    made = dict(inputs)
    length = max((value.shape[1] for value in inputs.values() if value.dim() == 2), default=0)
    frames = max((value.shape[1] for value in inputs.values() if value.dim() == 3), default=length)
    for name, parameter in accepted.items():
        if name in made or parameter.default is not parameter.empty or parameter.kind is parameter.VAR_KEYWORD:
            continue
        if name == "audio_mel_mask":  # says what is left out
            made[name] = torch.zeros(SAMPLES, frames, dtype=torch.bool)
        elif "mask" in name:
            made[name] = torch.ones(
                SAMPLES, frames if "feature" in name or "audio" in name else length or frames, dtype=torch.long
            )
        elif name.endswith("input_ids") or name == "task_inputs":
            made[name] = drawn_tokens(config, tokens, generator)
        elif name == "merge_sizes":
            made[name] = torch.ones(SAMPLES, dtype=torch.long)
        elif name == "spatial_shapes":
            made |= in_rows(config, generator)
        elif name.startswith("prompt_pixel") or name == "prompt_masks":
            made[name] = made.get("pixel_values", next(pictures(config, generator))).clone()
        elif name == "visual_feats":
            made[name] = torch.randn(SAMPLES, 6, int(getattr(config, "visual_feat_dim", 32)), generator=generator)
        elif name == "visual_pos":
            made[name] = torch.rand(SAMPLES, 6, 4, generator=generator)
        elif name.endswith("position_ids") and "pixel" in name:
            made[name] = (
                torch.stack(torch.meshgrid(*[torch.arange(GRID)] * 2, indexing="ij"), -1)
                .view(1, -1, 2)
                .expand(SAMPLES, -1, -1)
            )
        elif (value := guessed(name, made, config, tokens, generator)) is not None:
            made[name] = value
    return made
