"""Inputs that fit: as many features as a map says that it takes, and what else a model needs, by its name."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor

from rankfall.models.families.drawn import PLACES, SAMPLES, Inputs, drawn_tokens, states

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


def fitted(inputs: Inputs, error: str, generator: torch.Generator) -> Inputs | None:
    """The same with as many features as a map has just said that it takes."""
    for pattern, axis in MISFITS:
        found = pattern.search(error)
        if found is None:
            continue
        for name, value in inputs.items():
            kept = PLACES if name == "flattened_patches" else 0  # in front of the features
            if value.is_floating_point() and value.dim() > 1 and value.shape[axis] - kept == int(found["given"]):
                shape = list(value.shape)
                shape[axis] = int(found["wanted"])
                drawn = torch.randn(shape, generator=generator)
                return {**inputs, name: torch.cat([value[..., :kept], drawn], -1) if kept else drawn}
    return None


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
    if name == "visual_feats":
        return torch.randn(SAMPLES, 6, int(getattr(config, "visual_feat_dim", 32)), generator=generator)
    if name == "visual_pos":
        return torch.rand(SAMPLES, 6, 4, generator=generator)
    if name == "aspect_ratio_ids":
        return torch.ones(SAMPLES, 1, dtype=torch.long)
    if name == "bbox":
        return torch.randint(0, 20, (SAMPLES, length, 4), generator=generator).sort(-1).values
    return None
