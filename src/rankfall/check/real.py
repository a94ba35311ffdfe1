"""The measurement of a real model for the reference bands: its residual by layer on its own text, and where both come from."""

from __future__ import annotations

from importlib.metadata import version
from statistics import fmean

from rankfall.check.bands import BIRTH, PRETRAINED, RealModel, kind_of
from rankfall.models.load import load
from rankfall.models.source import PACKAGED, ModelSource
from rankfall.models.texts import Texts, batch_for
from rankfall.rank.residual import relative_residual
from rankfall.streams.arguments import Arguments, as_format
from rankfall.streams.editor import run_through
from rankfall.streams.examine import examine
from rankfall.streams.flow import Edits
from rankfall.streams.sized import has_norm

PAIR = 2  # samples in a pass; one would not show the axis of samples


def measure_model(source: ModelSource, texts: Texts) -> RealModel:
    """Return the row of a model, of its longest stream."""
    loaded = load(source, seed=texts.seed)
    batch = batch_for(loaded, texts)
    examined = examine(loaded.model, batch.part(0, PAIR), name=source.name)
    flow = examined.flows[0]
    curves = []
    for start in range(0, batch.samples - PAIR + 1, PAIR):
        part = as_format(Arguments((), batch.part(start, start + PAIR)), examined.dtype)
        states = run_through(examined.model, part, flow, Edits()).states
        curves.append([float(relative_residual(flow.layout.to_rows(state)).mean()) for state in states])
    packaged = PACKAGED.get(source.name)
    pretrained = source.phase == "pretrained"
    return RealModel(
        name=source.name,
        when=PRETRAINED if pretrained else BIRTH,
        kind=kind_of(flow, has_norm(examined, flow)),
        width=flow.width,
        residual=tuple(float(f"{fmean(values):.4g}") for values in zip(*curves)),
        package=f"{packaged.distribution} {version(packaged.distribution)}" if packaged and pretrained else "",
        revision=loaded.revision if pretrained else f"seed {texts.seed}",
        quantised=source.quantise or (packaged.quantised if packaged and pretrained else ""),
        text=batch.source,
        samples=len(curves) * PAIR,
        length=texts.length,
        versions=f"torch {version('torch')}, transformers {version('transformers')}",
    )
