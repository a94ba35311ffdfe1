"""Inputs adjusted to a model: the number of features that its error asks for, further inputs by their names, and explicit noise for a
model that draws random numbers in every pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.models.families.drawn import GRID, PLACES, SAMPLES, Inputs, as_whole, drawn_tokens, states, width_of

# messages with the actual and the expected size, and the axis that has it: the last, or the second
MISFITS = (
    (re.compile(r"mat1 and mat2 shapes cannot be multiplied \(\d+x(?P<actual>\d+) and (?P<expected>\d+)x\d+\)"), -1),
    (
        re.compile(
            r"expected input with shape \[\*, (?P<expected>\d+)\], but got input of size\s*\[(?:\d+, )*(?P<actual>\d+)\]"
        ),
        -1,
    ),
    (re.compile(r"expected input\[\d+, (?P<actual>\d+)[\d, ]*\] to have (?P<expected>\d+) channels"), 1),
    (re.compile(r"The size of tensor a \((?P<actual>\d+)\) must match the size of tensor b \((?P<expected>\d+)\)"), -1),
)
STATES = (
    r"^(encoder_hidden_states|patch_embeds|inputs_embeds|context|hidden_states|latents|last_hidden_state)$|"
    r"^(vision|text|backbone|audio)_(features|embeds|pos_encoding)$|(_queries|noise_embeds|context_hidden_states)$"
)
GROUPED = re.compile(r"shape '\[0, ")  # the model joins samples in groups larger than the batch
MOST_SAMPLES = 32  # of a batch that is made larger
MOST_BANDS = 1024  # of sound that is scaled to fit


def fit_inputs(inputs: Inputs, error: str, generator: torch.Generator) -> Inputs | None:
    """Return the inputs with the number of features that the error asks for, or with more samples if the model joins them in groups."""
    if GROUPED.search(error):
        return more_samples(inputs)
    for pattern, axis in MISFITS:
        match = pattern.search(error)
        if match is None:
            continue
        for name, value in inputs.items():
            lead = PLACES if name == "flattened_patches" else 0  # coordinates in front of the features
            if value.is_floating_point() and value.dim() > 1 and value.shape[axis] - lead == int(match["actual"]):
                shape = list(value.shape)
                shape[axis] = int(match["expected"])
                drawn = torch.randn(shape, generator=generator)
                return {**inputs, name: torch.cat([value[..., :lead], drawn], -1) if lead else drawn}
        return scaled(inputs, int(match["actual"]), int(match["expected"]), generator)
    return None


def scaled(inputs: Inputs, actual: int, expected: int, generator: torch.Generator) -> Inputs | None:
    """Return the inputs with the last axis scaled by expected / actual.

    This fits features that are folded before the failing map, as convolutions fold bands of sound.
    """
    for name, value in inputs.items():
        if not value.is_floating_point() or value.dim() < 3:
            continue
        bands = value.shape[-1] * expected
        if bands % actual == 0 and 0 < bands // actual <= MOST_BANDS:
            return {**inputs, name: torch.randn(*value.shape[:-1], bands // actual, generator=generator)}
    return None


def more_samples(inputs: Inputs) -> Inputs | None:
    """Return the inputs with four times as many samples, each copy rolled by another step."""
    count = max((len(value) for value in inputs.values() if value.dim()), default=MOST_SAMPLES)
    if 4 * count > MOST_SAMPLES:
        return None
    repeated = {}
    for name, value in inputs.items():
        repeated[name] = torch.cat([value.roll(step, -1) for step in range(4)]) if value.dim() else value
    return repeated


def guess_input(name: str, inputs: Inputs, config: Any, tokens: int, generator: torch.Generator) -> Tensor | None:
    """Return an input by its name, of a size that fits the other inputs, or None for an unknown name."""
    length = next((value.shape[1] for value in inputs.values() if value.dim() == 2), tokens)
    frames = next((value.shape[-1] for value in inputs.values() if value.dim() == 3), length)
    if "mask" in name and "bool" not in name and not name.startswith("aspect"):
        return torch.ones(SAMPLES, frames if "feature" in name or "audio" in name else length, dtype=torch.long)
    visual = int(getattr(config, "visual_feat_dim", 32))
    makers: dict[str, Callable[[], Tensor]] = {  # by a pattern of names
        "input_ids$": lambda: drawn_tokens(config, length, generator),
        STATES: lambda: states(config, length, generator),
        "^spatial_shapes$": lambda: torch.tensor([[GRID, GRID]]),
        "^num_patches$": lambda: torch.tensor(length),
        "^aspect_ratio_mask$": lambda: torch.ones(SAMPLES, 1, 1, dtype=torch.long),
        "(token_type|position)_ids$": lambda: torch.zeros(SAMPLES, length, dtype=torch.long),
        "^(lang_ids|language_ids|freq|speaker_ids|num_delay_tokens)$": lambda: torch.zeros(SAMPLES, dtype=torch.long),
        "input_values$": lambda: torch.randn(SAMPLES, length, 80, generator=generator),
        "^past_values_padding$": lambda: torch.zeros(SAMPLES, length),
        "^visual_feats$": lambda: torch.randn(SAMPLES, 6, visual, generator=generator),
        "^visual_pos$": lambda: torch.rand(SAMPLES, 6, 4, generator=generator),
        "^aspect_ratio_ids$": lambda: torch.ones(SAMPLES, 1, dtype=torch.long),
        "^bbox$": lambda: torch.randint(0, 20, (SAMPLES, length, 4), generator=generator).sort(-1).values,
    }
    return next((make() for pattern, make in makers.items() if re.search(pattern, name)), None)


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
        remaining = {name: value for name, value in inputs.items() if name != "pixel_values"}
        embeds = torch.randn(SAMPLES, GRID * GRID, width_of(config), generator=generator)
        yield {**remaining, "image_embeds": embeds, "pixel_mask": torch.ones(SAMPLES, GRID * GRID, dtype=torch.long)}
