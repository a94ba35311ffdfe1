"""Examine any module with an example of its inputs, and request measurements of Hugging Face models, by name or as objects (`models/`)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import nn

from rankfall.api.functions import original
from rankfall.api.layers import check_seed, check_whole_numbers, refuse_unused
from rankfall.api.residuals import Residuals, is_model, mean_of_samples
from rankfall.errors import RankfallError
from rankfall.measure.models import make_request
from rankfall.models.source import ModelSource, usual_phase
from rankfall.models.subject import Request, rows_of_subjects
from rankfall.models.texts import Texts
from rankfall.rank.powers import reason_of
from rankfall.rank.residual import at_floor, relative_residual
from rankfall.streams.arguments import NoStream
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
            residuals[name_of(flow.name, variant.name)] = Residuals(rows, note)
    return residuals


@contextmanager
def open_request(
    model: Any,
    samples: int,
    length: int,
    text: str,
    phase: str | None,
    variants: Sequence[str] | None,
    config: Any,
    seed: int | None,
) -> Iterator[Request]:
    """Build the request for a model. A model object is first saved to a temporary folder."""
    check_whole_numbers(samples=samples, length=length)
    if isinstance(variants, str):
        raise RankfallError(f"variants is {variants!r}: it must be a list of names")
    with tempfile.TemporaryDirectory() as folder:
        name = model if isinstance(model, str) else folder
        if not isinstance(model, str):
            model.save_pretrained(folder)
        source = ModelSource(name, phase or usual_phase(name), config=config or {})
        if source.phase == "pretrained":
            refuse_unused("pretrained weights have none", seed=seed)
        request = make_request(
            source, Texts(text, samples, length), variants=None if variants is None else tuple(variants)
        )
        assert request is not None  # None stands for an optional model that is not installed
        yield request


def residuals_of(
    model: Any,
    *,
    samples: int,
    norm: str,
    seed: int | None = None,
    length: int = 128,
    text: str = "topics",
    phase: str | None = None,
    variants: Sequence[str] | None = None,
    seeds: int = 1,
    config: dict[str, Any] | None = None,
) -> dict[str, Residuals]:
    """Return variant -> relative residual by layer, as means over seeds and samples."""
    from rankfall.rank.residuals.models import residual_rows

    check_whole_numbers(seeds=seeds)
    seed_range = range(check_seed(seed), check_seed(seed) + seeds)
    with open_request(model, samples, length, text, phase, variants, config, seed) as request:
        try:
            rows = rows_of_subjects(request, seed_range, lambda subject: residual_rows(subject, (norm,)))
        except NoStream:
            if variants is not None or seeds != 1:
                raise
            examined = examine_module(model, None, seed=check_seed(seed), length=length, config=config)
            examined.notes.append("measured as any module, on random inputs")
            return residuals_of_examined(examined, norm)
    by_variant: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for row in rows:
        by_variant.setdefault(row["variant"], {}).setdefault(row["layer"], []).append(row)
    return {name: Residuals(mean(layers[layer]) for layer in sorted(layers)) for name, layers in by_variant.items()}


def mean(rows: list[dict[str, Any]]) -> tuple[float | None, bool, str]:
    """Average the rows of a layer: value, floor and reason. A layer in which a row has no value has None."""
    lacking = [row["value_reason"] for row in rows if row["value"] is None]
    if lacking:
        return None, False, lacking[0]
    noise = sum(row["floor"] for row in rows) > len(rows) / 2
    return sum(row["value"] for row in rows) / len(rows), noise, ""


def law_rows(
    model: Any,
    *,
    samples: int,
    variant: str = "SAN",
    length: int = 128,
    text: str = "topics",
    phase: str | None = None,
    seed: int | None = None,
    config: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Return the rows of `model_law` of one variant; empty for models whose layers are not plain post-norm attention."""
    from rankfall.rank.law.models import law_rows

    with open_request(model, samples, length, text, phase, (variant,), config, seed) as request:
        return rows_of_subjects(request, [check_seed(seed)], law_rows)
