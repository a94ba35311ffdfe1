"""Residuals by layer of a Hugging Face model, initialised over seeds or pretrained, with parts of it removed."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from rankfall.measure.context import Context, Rows
from rankfall.measure.models import TEXTS, measure_models
from rankfall.models.source import PACKAGES
from rankfall.models.subject import Subject
from rankfall.rank import residual as res
from rankfall.rank.powers import TOO_SMALL, exponent_of, measurable, reason_of, shift, unit
from rankfall.streams.cuts import Variant

NEEDS = "nothing"
FILES, READS = TEXTS, PACKAGES

NORMS = ("composite", "l1", "linf", "frobenius")
WITHOUT_FIRST, WITHOUT_LARGEST = "without_first", "without_largest"
LARGEST = 3  # channels
Metric = tuple[str, str, Tensor | None, Tensor]  # name, centre, absolute (B,), relative or value (B,)


@measure_models(
    seeds=8, samples=32, length=128, dtype="float64", definition="clean", variants=None, streamed=False,
)  # fmt: skip
def model_residuals(context: Context, subject: Subject, *, spectrum_samples: int = 4) -> Rows:
    """Measure the variants of a model.

    `streamed`: load weights layer by layer, for models larger than memory. `spectrum_samples`: number of samples that also get numbers of
    their singular values.
    """
    return residual_rows(subject, NORMS, spectrum_samples)


def residual_rows(subject: Subject, norms: Sequence[str], spectrum_samples: int = 0, *, parts: bool = False) -> Rows:
    """Return a row for each variant, layer, sample and metric of a model.

    Metrics are computed in float64, whatever the format of the forward pass. `parts`: also without the first token, and without the
    largest channels.
    """
    rows: Rows = []
    for variants, start, stop in subject.passes():
        measured = partial(metrics, norms=norms, spectrum=spectrum_samples - start, parts=parts)
        rows += rows_of_pass(subject, variants, start, stop, measured)
    return rows


def rows_of_pass(
    subject: Subject, variants: list[Variant], start: int, stop: int, measured: Callable[[Tensor], Iterator[Metric]]
) -> Rows:
    """Return the rows of all layers, for variants that run together on samples start .. stop."""
    rows: Rows = []
    # variant -> (B,), True for samples whose state has left the range of its format in this or an earlier layer
    lost = {variant.name: torch.zeros(()).bool() for variant in variants}

    def add(layer: int, states: Tensor) -> None:  # (V, B, T, D)
        for variant, state in zip(variants, states):
            exact = state.double()
            lost[variant.name] = lost_samples = ~measurable(exact, subject.dtype) | lost[variant.name]
            reasons = [reason_of(x[None], subject.dtype, out[None]) for x, out in zip(exact, lost_samples)]
            for metric, centre, absolute, value in measured(torch.where(lost_samples[:, None, None], 0.0, exact)):
                empty = [None] * len(value)
                sizes = empty if absolute is None else number_or_none(absolute, lost_samples[: len(value)])
                floors = empty if absolute is None else res.at_floor(value, subject.dtype).tolist()
                for index, number in enumerate(number_or_none(value, lost_samples[: len(value)])):
                    about = {"variant": variant.name, "layer": layer, "sample": start + index, "metric": metric}
                    about |= {"centre": centre, "value": number, "absolute": sizes[index]}
                    reason = "" if number is not None else reasons[index] or TOO_SMALL
                    rows.append(about | {"floor": None if number is None else floors[index], "value_reason": reason})

    subject.run(variants, start, stop, add)
    return rows


def metrics(state: Tensor, norms: Sequence[str], spectrum: int, parts: bool = False) -> Iterator[Metric]:
    """Yield (metric, centre, absolute, relative or value) of states (B, T, D). Singular values: of the first `spectrum` samples."""
    # One sample after another, so that its state stays in the processor's cache for all norms.
    by_sample, sizes = [], exponent_of(state)
    for sample in state.split(1):  # (1, T, D)
        sample = unit(sample)
        by_sample.append([res.matrix_norms(x, norms) for x in (sample, res.residual(sample))])
    for norm in norms:
        size, rest = (torch.cat([pair[part][norm] for pair in by_sample]) for part in (0, 1))
        yield norm, "mean", shift(rest, sizes), res.share(rest, size)
    if parts:
        for name, part in parts_of(state):
            sizes = exponent_of(part)
            part = unit(part)
            rest = res.matrix_norm(res.residual(part), "composite")
            yield name, "mean", shift(rest, sizes), res.share(rest, res.matrix_norm(part, "composite"))
    if spectrum > 0:
        few = unit(state[:spectrum])
        values = torch.linalg.svdvals(few.mT)  # transposed, which halves LAPACK's time and gives the same numbers
        second = values[..., 1] if values.shape[-1] > 1 else torch.zeros_like(values[..., 0])
        yield "sigma_ratio", "none", shift(second, sizes[:spectrum]), res.share(second, values[..., 0])
        yield "stable_rank", "none", None, (values / values[..., :1]).square().sum(-1)


def parts_of(state: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield states (B, T, D) without parts that can dominate: the first token, and each sample's channels of the largest mean square."""
    if state.shape[1] > 2:
        yield WITHOUT_FIRST, state[:, 1:]
    if state.shape[2] > 2 * LARGEST:
        size = unit(state).square().mean(1)  # (B, D)
        kept = size.argsort(-1)[:, :-LARGEST].sort(-1).values
        yield WITHOUT_LARGEST, state.gather(2, kept[:, None, :].expand(-1, state.shape[1], -1))


def number_or_none(values: Tensor, lost: Tensor) -> list[float | None]:
    """Return values (B,) as plain numbers, None where they are lost or not finite."""
    return [value if math.isfinite(value) else None for value in torch.where(lost, torch.nan, values).tolist()]
