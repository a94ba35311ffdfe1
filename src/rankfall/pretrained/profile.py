"""Rows of `model_residuals`: what is left of the differences between tokens, layer by layer, in every variant of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from rankfall.measures import _residual as res
from rankfall.pretrained.subject import Spec, Subject, subjects
from rankfall.pretrained.surgery import Variant


def profile(
    spec: Spec, seeds: Sequence[int], *, norms: Sequence[str], best_samples: int, spectrum_samples: int
) -> list[dict[str, Any]]:
    """All rows of a model: every seed, variant, layer, sample and metric."""
    rows: list[dict[str, Any]] = []
    for subject in subjects(spec, seeds):
        labels = subject.labels()
        for variant in subject.variants:
            for row in _variant_rows(subject, variant, norms, best_samples, spectrum_samples):
                rows.append({**labels, "variant": variant.name, **row})
    return rows


def _variant_rows(
    subject: Subject, variant: Variant, norms: Sequence[str], best_samples: int, spectrum_samples: int
) -> Iterator[dict[str, Any]]:
    for start, stop in subject.parts():
        for layer, state in enumerate(subject.states(variant, start, stop)):
            state = state.double()  # metrics in float64 whatever the pass was computed in
            for metric, centre, absolute, value in metrics(
                state, norms, best_samples - start, spectrum_samples - start
            ):
                floored = res.at_floor(value, subject.dtype) if absolute is not None else None
                for index in range(value.shape[0]):
                    yield {
                        "layer": layer,
                        "sample": start + index,
                        "metric": metric,
                        "centre": centre,
                        "value": float(value[index]),
                        "absolute": None if absolute is None else float(absolute[index]),
                        "floor": None if floored is None else bool(floored[index]),
                    }


def metrics(
    state: Tensor, norms: Sequence[str], best: int, spectrum: int
) -> Iterator[tuple[str, str, Tensor | None, Tensor]]:
    """(metric, centre, absolute, relative or value) of states (B, T, D); the slow ones for the first `best`, `spectrum` samples."""
    rest = res.residual(state)
    for norm in norms:
        size, absolute = res.matrix_norm(state, norm), res.matrix_norm(rest, norm)
        yield norm, "mean", absolute, _ratio(absolute, size)
        if norm in ("composite", "l1", "linf") and best > 0:
            few = state[:best]
            absolute = res.matrix_norm(res.residual(few, "best", norm), norm)
            yield norm, "best", absolute, _ratio(absolute, size[:best])
    if spectrum > 0:
        few = state[:spectrum]
        values = torch.linalg.svdvals(few)
        top = values[..., :1].clamp_min(torch.finfo(values.dtype).tiny)
        second = values[..., 1] / top[..., 0] if values.shape[-1] > 1 else torch.zeros_like(top[..., 0])
        yield "sigma_ratio", "none", second * top[..., 0], second
        yield "stable_rank", "none", None, (values / top).square().sum(-1)


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    return torch.where(whole > 0, part / whole.clamp_min(torch.finfo(whole.dtype).tiny), torch.zeros_like(whole))
