"""Selection of the module and the residual stream that a function of the API measures."""

from __future__ import annotations

from typing import Any

from torch import nn

from rankfall.api.functions import original
from rankfall.api.residuals import is_model
from rankfall.errors import RankfallError
from rankfall.streams.examine import Examined, examine
from rankfall.streams.flow import Flow

LENGTH = 32  # tokens of inputs that are drawn


def examine_given(given: Any, inputs: Any, blocks: Any = None, seed: int = 0) -> Examined:
    """Examine a module with an example of its inputs, or a model of Hugging Face, by name or object. Inputs of a model default to drawn
    ones.
    """
    given = original(given)
    if inputs is None and is_model(given):
        from rankfall.check.library import of_library
        from rankfall.models.families.example import example_inputs

        if isinstance(given, str):
            model, inputs, name = of_library(given, {}, small=False, length=LENGTH, seed=seed, say=lambda line: None)
            return examine(model, inputs, blocks=blocks, name=name)
        inputs = example_inputs(given, given.config, tokens=LENGTH, seed=seed)
    if not isinstance(given, nn.Module):
        raise RankfallError(f"{type(given).__name__} is not an nn.Module: pass a module and an example of its inputs")
    if inputs is None:
        raise RankfallError(
            f"{type(given).__name__} needs an example of its inputs: a tensor, a tuple of arguments or a dict of keyword arguments"
        )
    return examine(given, inputs, blocks=blocks)


def stream_of(examined: Examined, name: str | None) -> Flow:
    """Return the stream of this name; None selects the only stream."""
    names = [flow.name for flow in examined.flows]
    if name is None and len(names) == 1:
        return examined.flows[0]
    if name not in names:
        said = f"there is no stream {name!r}" if name is not None else f"{examined.name} has {len(names)} streams"
        raise RankfallError(f"{said}: stream must be one of {', '.join(map(repr, names))}")
    return examined.flows[names.index(name)]


def name_of(stream: str, name: str) -> str:
    """Return the name of a branch, preceded by a stream's name if there is one: "encoder layers.0 attention"."""
    return f"{stream} {name}".strip()
