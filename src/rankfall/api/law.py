"""`collapse_law`: log10 of the residual by layer, and the local exponent of each layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rankfall.api.layers import (
    Layers,
    architecture,
    check_options,
    check_seed,
    check_whole_numbers,
    draw_states,
    layers_of,
    network_of,
    options_of,
    refuse_unused,
)
from rankfall.api.residuals import is_model, shake
from rankfall.errors import RankfallError
from rankfall.rank.bounds import OUT
from rankfall.rank.carried import carry_twice, repeat_step
from rankfall.rank.residual import at_floor, matrix_norm, relative_residual, residual
from rankfall.rank.rounding import NOISE, relative_difference
from rankfall.streams.arguments import keep_random_state

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SMALLER = math.exp(-0.1)  # the factor by which R is scaled down for the local exponent
# Largest share of rounding in a residual that has an exponent: it causes an error of 0.01 in the exponent.
STEADY = 5e-4


@dataclass(frozen=True)
class Law:
    """The law of layers 0 .. L, as means over samples. A number is None if rounding hides it or rows are identical; see `reason`."""

    log10_residual: list[float | None]
    exponent: list[float | None]  # 3: the cubic law; 1: a constant factor a layer; None at layer 0
    method: str  # centred: without a rounding floor; float64: plain passes
    reason: str
    lost: list[bool] = field(default_factory=list)  # layers whose state is beyond the range of float64

    def __str__(self) -> str:
        head = f"log10 residual by layer ({self.method}{'; ' + self.reason if self.reason else ''})"
        lost = self.lost or [False] * len(self.exponent)
        lines = []
        for layer, (log, p, gone) in enumerate(zip(self.log10_residual, self.exponent, lost)):
            shown = f"{log:.4g}" if log is not None else "out of range" if gone else "rounding"
            lines.append(f"{layer:5}  {shown:>12}  {'' if p is None else f'exponent {p:.3f}'}")
        return "\n".join([head, *(line.rstrip() for line in lines)])


@torch.no_grad()
def collapse_law(
    given: str | PreTrainedModel | Callable[..., Any] | Sequence[Callable[..., Any]] | None = None,
    *,
    depth: int | None = None,
    samples: int = 4,
    tokens: int | None = None,
    width: int | None = None,
    heads: int | None = None,
    seed: int | None = None,
    **parts: Any,
) -> Law:
    """Measure the law of rank collapse: is log res multiplied by 3 in each layer, or does it fall by a constant?

    `given` is a function, a list of functions or an `nn.Sequential`, as for `residuals`, or a model of Hugging Face that is built like BERT
    (options `variant`, `text`, `length`, `config`). If it is None, the network is built from the components in `parts`, such as
    `normaliser="l2", residual="add"`; by default it is attention alone. Networks of components and models have no rounding floor.
    Defaults: `depth` 6, `tokens` 16, `width` 32, `heads` 2.
    """
    check_whole_numbers(samples=samples)
    if is_model(given):
        from rankfall.api.models import law_rows

        refuse_unused("a model has its own", depth=depth, tokens=tokens, width=width, heads=heads)
        with keep_random_state():
            check_options("collapse_law() of a model", parts, options_of(law_rows))
            rows = law_rows(given, samples=samples, seed=seed, **parts)
        if not rows:
            known = "post-norm models like BERT, RoBERTa, ALBERT, DistilBERT"
            raise RankfallError(f"the law is known for {known}; `residuals` is for any")
        return by_layer(rows, "centred", "")
    sizes, count = (16 if tokens is None else tokens, 32 if width is None else width), 2 if heads is None else heads
    check_whole_numbers(tokens=sizes[0], width=sizes[1])
    if given is not None and parts:
        names = ", ".join(parts)
        raise RankfallError(f"parts of an architecture ({names}) are for a network of components, not for functions")
    with keep_random_state():
        if given is None:
            from rankfall.rank.law.measure import law

            design = architecture(parts, depth=6 if depth is None else depth, width=sizes[1], heads=count)
            network = network_of(design, 1, sizes[0], check_seed(seed))
            data = SimpleNamespace(test=SimpleNamespace(inputs=draw_states(1, samples, *sizes, check_seed(seed))))
            rows = law(SimpleNamespace(network=network, data=data), samples=samples)  # type: ignore[arg-type]
            return by_layer(rows, rows[-1]["method"], rows[-1]["method_reason"])
        stack = layers_of(given, depth, 1, sizes[1], count, check_seed(seed))
        if not stack.drawn:
            refuse_unused("only attention functions f(q, k, v) have heads here", heads=heads)
        return law_of_layers(stack, draw_states(1, samples, *sizes, check_seed(seed)))


def by_layer(rows: list[dict[str, Any]], method: str, reason: str) -> Law:
    """Average the rows of each layer that have a number above the rounding floor."""
    depth = max(row["layer"] for row in rows)
    columns: dict[str, list[float | None]] = {"log10_residual": [], "exponent": []}
    chosen = [[row for row in rows if row["layer"] == layer] for layer in range(depth + 1)]
    for name, column in columns.items():
        for layer_rows in chosen:
            values = [row[name] for row in layer_rows if not row.get("floor") and row.get(name) is not None]
            column.append(sum(values) / len(values) if values else None)
    lost = [all(row.get("value_reason") == OUT for row in layer_rows) for layer_rows in chosen]
    if any(lost):
        reason = "; ".join(filter(None, [reason, f"from layer {lost.index(True)}: {OUT}"]))
    return Law(**columns, method=method, reason=reason, lost=lost)


def law_of_layers(stack: Layers, x: Tensor) -> Law:
    """Measure the law of functions by plain passes, as far as float64 resolves it. x (1, B, T, D)."""
    passes = carry_twice(stack.checked(), stack.layers, x, shake(x))  # the second pass rounds differently
    state = next(passes)[0]
    logs: list[float | None] = [relative_residual(x).log10().mean().item()]
    exponents: list[float | None] = [None]
    lost = [False]
    for layer, (after, moved, step) in zip(stack.layers, passes, strict=True):
        less = replace(state, unit=state.unit - (1 - SMALLER) * residual(state.unit))  # same common row, smaller R
        (smaller,) = repeat_step(lambda x, layer=layer: [layer(x)], less, step, [after])  # type: ignore[misc]
        gap = relative_difference(residual(after.unit), residual(moved.unit), "composite")  # (1, B), rounding
        relative = after.mask_lost(relative_residual(after.unit))
        clear = ~at_floor(relative, x.dtype) & (gap <= NOISE) & ~after.lost
        sizes = [matrix_norm(residual(carried.unit), "composite") for carried in (after, smaller)]  # (1, B)
        change = (sizes[0] / sizes[1]).log() / -math.log(SMALLER)
        logs.append(mean(relative.log10(), clear))
        exponents.append(mean(change, clear & (gap <= STEADY)))
        lost.append(bool(after.lost.all()))
        state = after
    reasons = [stack.note()]
    if any(lost):
        reasons.append(f"from layer {lost.index(True)}: {OUT}")
    if any(value is None and not gone for value, gone in zip(logs, lost)):
        reasons.append("float64 resolves nothing smaller")
    return Law(logs, exponents, "float64", "; ".join(filter(None, reasons)), lost)


def mean(values: Tensor, chosen: Tensor) -> float | None:
    """Return the mean of the chosen values (1, B); None if no sample is chosen."""
    return values[chosen].mean().item() if bool(chosen.any()) else None
