"""Examine any module: select the stream that a function of the API measures, and compute `residuals` on an example of its inputs."""

from __future__ import annotations

from typing import Any

from torch import nn

from rankfall.api.functions import original
from rankfall.api.residuals import Residuals, is_model, mean_of_samples
from rankfall.errors import RankfallError
from rankfall.rank.powers import reason_of
from rankfall.rank.residual import at_floor, relative_residual
from rankfall.streams.cuts import cut_by, states_of, variants_of
from rankfall.streams.examine import Examined, examine
from rankfall.streams.flow import Flow

LENGTH = 32  # tokens of inputs that are drawn


def examine_module(
    module: Any,
    inputs: Any,
    blocks: Any = None,
    *,
    seed: int = 0,
    length: int = LENGTH,
    config: dict[str, Any] | None = None,
) -> Examined:
    """Examine a module with an example of its inputs, or a model of Hugging Face, by name or object.

    A model without inputs gets random ones of `length` tokens. `config` changes values of the configuration of a model by name.
    """
    module = original(module)
    if inputs is None and is_model(module):
        from rankfall.check.library import library_model
        from rankfall.models.families.example import example_inputs

        if isinstance(module, str):
            model, inputs, name = library_model(
                module, config or {}, small=False, length=length, seed=seed, say=lambda line: None
            )
            return examine(model, inputs, blocks=blocks, name=name)
        inputs = example_inputs(module, module.config, tokens=length, seed=seed)
    if not isinstance(module, nn.Module):
        raise RankfallError(f"{type(module).__name__} is not an nn.Module: pass a module and an example of its inputs")
    if inputs is None:
        raise RankfallError(
            f"{type(module).__name__} needs an example of its inputs: a tensor, a tuple of arguments or a dict of keyword arguments"
        )
    return examine(module, inputs, blocks=blocks)


def stream_of(examined: Examined, name: str | None) -> Flow:
    """Return the stream of this name; None selects the only stream."""
    names = [flow.name for flow in examined.flows]
    if name is None and len(names) == 1:
        return examined.flows[0]
    if name not in names:
        fault = f"there is no stream {name!r}" if name is not None else f"{examined.name} has {len(names)} streams"
        raise RankfallError(f"{fault}: stream must be one of {', '.join(map(repr, names))}")
    return examined.flows[names.index(name)]


def name_of(stream: str, name: str) -> str:
    """Return the name of a branch, preceded by a stream's name if there is one: "encoder layers.0 attention"."""
    return f"{stream} {name}".strip()


def residuals_of_examined(examined: Examined, norm: str) -> dict[str, Residuals]:
    """Return variant -> relative residual by layer, as means over samples.

    With several streams, each key begins with the name of its stream, as in "encoder transformer".
    """
    residuals = {}
    for flow in examined.flows:
        cut = (
            f"it begins behind {flow.joins[0]}, which no skip passes" if flow.follows is not None and flow.joins else ""
        )
        mixes = "" if any(branch.mixes for branch in flow.branches) else "no branch of it mixes tokens"
        note = "; ".join(filter(None, [*examined.notes, *flow.missing, *flow.unmeasured, cut, mixes]))
        for variant in variants_of(flow):
            rows = []
            for state in states_of(examined, flow, cut_by(variant)):  # (S, T, D)
                relative = relative_residual(state, norm)  # (S,)
                rows.append(mean_of_samples(relative, at_floor(relative, state.dtype), reason_of(state)))
            residuals[name_of(flow.name, variant.name)] = Residuals.from_layers(rows, note)
    return residuals
