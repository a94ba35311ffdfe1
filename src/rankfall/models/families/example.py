"""Example inputs of a model of the library: the kinds that its forward accepts, tried one by one until one runs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch import nn

from rankfall.errors import RankfallError, describe_error
from rankfall.models.families.drawn import (
    GRID,
    SAMPLES,
    Inputs,
    clips,
    draw_game,
    draw_patches,
    drawn_tokens,
    in_rows,
    joined_inputs,
    patch_places,
    patches,
    pictures,
    series,
    sounds,
    squares,
    states,
)  # fmt: skip
from rankfall.models.families.fitted import draws, fit_inputs, guess_input, without_draws
from rankfall.streams.arguments import caches_off
from rankfall.streams.examine import FAILURES as FAILURES_OF_PASSES

FAILURES = (*FAILURES_OF_PASSES, ImportError, ZeroDivisionError, NameError)
SOUNDS = ("input_values", "input_features", "audio_values", "audio_mel")
STATES = ("hidden_states", "inputs_embeds", "inputs", "context", "patch_embeds")
ROUNDS = 3  # of adding the inputs that errors name
MOST_ADDED = 40  # attempts with one more input


def example_inputs(model: nn.Module, config: Any, *, tokens: int = 16, seed: int = 0, thorough: bool = True) -> Inputs:
    """Return keyword arguments on which the model runs; the error lists the failures. `thorough`: also try optional inputs."""
    generator = torch.Generator().manual_seed(seed)
    accepted = inspect.signature(model.forward).parameters
    off = caches_off(model)
    errors: list[str] = []
    tried: list[Inputs] = []
    for plain in candidates(accepted, config, tokens, generator):
        tried.append(complete(plain, accepted, config, tokens, generator))
        runnable = try_inputs(model, tried[-1], off, generator, errors)
        if runnable is not None:
            return steady(model, runnable, off, accepted, config, generator)
    for inputs in islice(with_more(tried, accepted, config, tokens, generator, errors), MOST_ADDED if thorough else 0):
        runnable = try_inputs(model, inputs, off, generator, errors)
        if runnable is not None:
            return steady(model, runnable, off, accepted, config, generator)
    raise RankfallError(
        f"{type(model).__name__} runs on none of the inputs that were tried: {'; '.join(errors[:3]) or 'none is known'}"
    )


def steady(
    model: nn.Module, inputs: Inputs, off: dict[str, bool], accepted: Any, config: Any, generator: torch.Generator
) -> Inputs:
    """Return inputs on which the model draws no random numbers, or the inputs unchanged if there are none."""
    if not draws(model, inputs, off):
        return inputs
    for candidate in without_draws(inputs, accepted, config, generator):
        runnable = try_inputs(model, candidate, off, generator, [])
        if runnable is not None and not draws(model, runnable, off):
            return runnable
    return inputs


def try_inputs(
    model: nn.Module, inputs: Inputs, off: dict[str, bool], generator: torch.Generator, errors: list[str]
) -> Inputs | None:
    """Return the inputs if the model runs on them, perhaps with another number of features; else None. Append each error to `errors`."""
    for _ in range(3):
        try:
            with torch.no_grad():
                model(**inputs, **off)
            return inputs
        except ImportError as error:
            raise RankfallError(describe_error(error)) from error
        except FAILURES as error:
            errors.append(f"{', '.join(inputs)}: {describe_error(error, 100)}")
            wider = fit_inputs(inputs, str(error), generator)
        if wider is None:
            return None
        inputs = wider
    return None


def with_more(
    tried: list[Inputs], accepted: Any, config: Any, tokens: int, generator: torch.Generator, errors: list[str]
) -> Iterator[Inputs]:
    """Yield the inputs that failed, extended by the inputs that the errors name, by one optional input, or by all of them."""
    for inputs in tried:
        further = {
            name: value
            for name, parameter in accepted.items()
            if name not in inputs and parameter.default is not parameter.empty
            and not (name == "inputs_embeds" and "input_ids" in inputs)
            and (value := guess_input(name, inputs, config, tokens, generator)) is not None
        }  # fmt: skip
        before: set[str] = set()
        for _ in range(ROUNDS):  # once an input is passed, the next error may name another
            named = {name for name in further if any(re.search(rf"\b{name}\b", line) for line in errors)}
            if named > before:
                yield {**inputs, **{name: further[name] for name in named}}
            before = named
        for name, value in further.items():
            yield {**inputs, name: value}
        if len(further) > 1:
            yield {**inputs, **further}


def candidates(accepted: Any, config: Any, tokens: int, generator: torch.Generator) -> Iterator[Inputs]:
    """Yield inputs by the names that the forward accepts: text, images, both, sound, states, time series."""
    grid = next((key for key in ("grid_thw", "image_grid_thw") if key in accepted), None)
    for name in ("hidden_states", "pixel_values"):
        if name in accepted and grid is not None and "input_ids" not in accepted:
            yield {name: patches(config, generator), grid: torch.tensor([[1, GRID, GRID]] * SAMPLES)}
    if grid is not None and "pixel_values" in accepted and "input_ids" not in accepted:
        yield {"pixel_values": squares(config, generator), grid: torch.tensor([[1, GRID, GRID]] * SAMPLES)}
    if "input_ids" in accepted:
        ids = drawn_tokens(config, tokens, generator)
        words = {"input_ids": ids}
        if "spatial_shapes" in accepted:
            yield {**words, **in_rows(config, generator)}
        decoder = {"decoder_input_ids": ids.flip(1)} if "decoder_input_ids" in accepted else {}
        if "pixel_values" in accepted:
            for picture in pictures(config, generator):
                yield {**words, **decoder, "pixel_values": picture}
                yield {**words, **decoder, "pixel_values": picture.unsqueeze(1)}
        for name in ("input_features", "input_values"):
            for value in sounds(name, config, generator) if name in accepted else ():
                yield {**words, name: value}
        yield {**words, **decoder}
        if "attention_mask" in accepted:
            yield {**words, **decoder, "attention_mask": torch.ones_like(ids)}
        if "bbox" in accepted:
            yield {**words, "bbox": torch.randint(0, 20, (SAMPLES, tokens, 4), generator=generator).sort(-1).values}
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
    for name in (*SOUNDS, *STATES):
        if name in accepted:
            values = sounds(name, config, generator) if name in SOUNDS else [states(config, tokens, generator)]
            for value in values:
                yield {name: value}
                if f"{name}_mask" in accepted:  # time may be the last axis
                    yield {name: value, f"{name}_mask": torch.ones(SAMPLES, value.shape[-1], dtype=torch.long)}
                if "decoder_input_ids" in accepted:
                    yield {name: value, "decoder_input_ids": drawn_tokens(config, tokens, generator)}
    for name in ("pixel_values", "hidden_states"):
        if name in accepted:
            yield {name: patches(config, generator).view(SAMPLES, GRID * GRID, -1)}
            yield {name: next(pictures(config, generator))}
    if "decoder_input_ids" in accepted and "pixel_values" in accepted:
        for picture in pictures(config, generator):
            yield {"pixel_values": picture, "decoder_input_ids": drawn_tokens(config, tokens, generator)}
    if "flattened_patches" in accepted:
        yield {"flattened_patches": draw_patches(config, generator)}
    if "past_values" in accepted:
        yield from series(accepted, config, generator)
    if "query_embeds" in accepted:
        yield {"query_embeds": states(config, tokens, generator)}
    if "returns_to_go" in accepted:
        yield draw_game(config, generator)
    yield from joined_inputs(accepted, config, tokens, generator)
    yield {}  # only the required inputs, which `complete` guesses by their names


def complete(inputs: Inputs, accepted: Any, config: Any, tokens: int, generator: torch.Generator) -> Inputs:
    """Add the other required inputs: masks that hide nothing, further texts, positions of images."""
    full = dict(inputs)
    length = max((value.shape[1] for value in inputs.values() if value.dim() == 2), default=0)
    frames = max((value.shape[1] for value in inputs.values() if value.dim() == 3), default=length)
    for name, parameter in accepted.items():
        if name in full or parameter.default is not parameter.empty or parameter.kind is parameter.VAR_KEYWORD:
            continue
        if name == "audio_mel_mask":  # true where a frame is left out
            full[name] = torch.zeros(SAMPLES, frames, dtype=torch.bool)
        elif "mask" in name:
            full[name] = torch.ones(
                SAMPLES, frames if "feature" in name or "audio" in name else length or frames, dtype=torch.long
            )
        elif name.endswith("input_ids") or name == "task_inputs":
            full[name] = drawn_tokens(config, int(getattr(config, "task_seq_len", tokens)), generator)
        elif name == "merge_sizes":
            full[name] = torch.ones(SAMPLES, dtype=torch.long)
        elif name == "spatial_shapes":
            full |= in_rows(config, generator)
        elif name.startswith("prompt_pixel") or name == "prompt_masks":
            full[name] = full.get("pixel_values", next(pictures(config, generator))).clone()
        elif name.endswith("position_ids") and "pixel" in name:
            full[name] = patch_places(0)
        elif (value := guess_input(name, full, config, tokens, generator)) is not None:
            full[name] = value
    return full
