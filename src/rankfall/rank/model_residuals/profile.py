"""Rows of `model_residuals`: the remaining differences between tokens, layer by layer, in every variant of a model."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rankfall.models.subject import Request, Subject, subjects
from rankfall.rank import residual as res
from rankfall.rank.powers import TOO_SMALL, exponent_of, measurable, reason_of, shift, unit
from rankfall.streams.variants import Variant

WITHOUT_FIRST, WITHOUT_LARGEST = "without_first", "without_largest"
LARGEST = 3  # channels


def profile(
    request: Request,
    seeds: Sequence[int],
    *,
    norms: Sequence[str],
    best_samples: int,
    spectrum_samples: int,
    parts: bool = False,
    say: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """Return all rows of a model: every seed, variant, layer, sample and metric.

    `parts`: also without the first token, and without the largest channels. `say`: called with progress messages.
    """
    rows: list[dict[str, Any]] = []
    for subject in subjects(request, seeds):
        labels = subject.labels()
        if not rows:
            say(f"{request.source.name}: {subject.stream.flow.summary()}; untouched run bit-identical")
            if subject.left_out:
                say(f"{request.source.name}: left out: {', '.join(subject.left_out)}")
        seed = "" if subject.seed is None else f"seed {subject.seed}, "
        say(
            f"{request.source.name}: {seed}{len(subject.variants)} variants, {subject.batch.samples} x {subject.tokens} tokens"
        )
        for variants, start, stop in subject.passes():
            collect = _Collector(subject, labels, variants, start, norms, best_samples, spectrum_samples, parts, rows)
            subject.run(variants, start, stop, collect)
            del collect
        del subject  # frees the model before that of the next seed is built
    return rows


@dataclass
class _Collector:
    """Callback that turns states into rows as they arrive."""

    subject: Subject
    labels: dict[str, Any]
    variants: list[Variant]
    start: int
    norms: Sequence[str]
    best_samples: int
    spectrum_samples: int
    parts: bool
    rows: list[dict[str, Any]]
    lost: dict[str, Tensor] = field(
        default_factory=dict
    )  # variant -> (B,), True for samples whose state has left the range of its format

    def __call__(self, layer: int, states: Tensor) -> None:
        """Add the rows of a layer from states (V, B, T, D). Metrics are computed in float64, whatever the format of the forward pass."""
        few = (self.best_samples - self.start, self.spectrum_samples - self.start)
        for variant, state in zip(self.variants, states):
            about = {**self.labels, "variant": variant.name, "layer": layer}
            here = state.double()
            lost = ~measurable(here, self.subject.dtype) | self.lost.get(variant.name, torch.zeros(()).bool())
            self.lost[variant.name] = lost
            reasons = [reason_of(one[None], self.subject.dtype, gone[None]) for one, gone in zip(here, lost)]
            here = torch.where(lost[:, None, None], 0.0, here)
            for metric, centre, absolute, value in metrics(here, self.norms, *few, self.parts):
                floored = None if absolute is None else res.at_floor(value, self.subject.dtype).tolist()
                gone = lost[: len(value)]
                values = number_or_none(value, gone)
                sizes = None if absolute is None else number_or_none(absolute, gone)
                for index, number in enumerate(values):
                    self.rows.append(
                        {
                            **about,
                            "sample": self.start + index,
                            "metric": metric,
                            "centre": centre,
                            "value": number,
                            "absolute": None if sizes is None else sizes[index],
                            "floor": None if floored is None or number is None else floored[index],
                            "value_reason": "" if number is not None else reasons[index] or TOO_SMALL,
                        }
                    )


def metrics(
    state: Tensor, norms: Sequence[str], best: int, spectrum: int, parts: bool = False
) -> Iterator[tuple[str, str, Tensor | None, Tensor]]:
    """Yield (metric, centre, absolute, relative or value) of states (B, T, D).

    Slow metrics are computed for the first `best` and `spectrum` samples only.
    """
    # One sample after another, so that its state stays in the processor's cache for all norms.
    found, sizes = [], exponent_of(state)
    for one in state.split(1):
        one = unit(one)
        found.append([res.matrix_norms(x, norms) for x in (one, res.residual(one))])
    for norm in norms:
        size, rest = (torch.cat([sample[part][norm] for sample in found]) for part in (0, 1))
        yield norm, "mean", shift(rest, sizes), res.share(rest, size)
        if norm in ("composite", "l1", "linf") and best > 0:
            few = unit(state[:best])
            rest = res.matrix_norm(res.residual(few, "best", norm), norm)
            yield norm, "best", shift(rest, sizes[:best]), res.share(rest, size[:best])
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
