"""`collapse_law`: log10 of the residual by layer, and the local exponent of each layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from rankfall.api.layers import Layer, architecture, drawn_states, finite, layers_of, network_of, whole_numbers
from rankfall.api.residuals import is_model
from rankfall.errors import RankfallError
from rankfall.rank.residual import at_floor, matrix_norm, relative_residual, residual
from rankfall.rank.rounding import NOISE, UNITS, apart

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SMALLER = math.exp(-0.1)  # by this factor R is made smaller for the local exponent
STEADY = 5e-4  # a residual of which more is rounding has no exponent: an error of this share is one of 0.01 in it


@dataclass(frozen=True)
class Law:
    """By layer 0 .. L, means over samples; None where rounding hides it, and where `reason` says so."""

    log10_residual: list[float | None]
    exponent: list[float | None]  # 3: the cubic law; 1: a constant factor a layer; None at layer 0
    method: str  # centred: without a rounding floor; float64: plain passes
    reason: str

    def __str__(self) -> str:
        head = f"log10 residual by layer ({self.method}{'; ' + self.reason if self.reason else ''})"
        lines = [
            f"{layer:5}  {'rounding' if log is None else f'{log:.4g}':>12}  {'' if p is None else f'exponent {p:.3f}'}"
            for layer, (log, p) in enumerate(zip(self.log10_residual, self.exponent))
        ]
        return "\n".join([head, *(line.rstrip() for line in lines)])


@torch.no_grad()
def collapse_law(
    given: str | PreTrainedModel | Callable[..., Any] | Sequence[Callable[..., Any]] | None = None,
    *,
    depth: int = 6,
    samples: int = 4,
    tokens: int = 16,
    width: int = 32,
    heads: int = 2,
    seed: int = 0,
    **parts: Any,
) -> Law:
    """The law of rank collapse: is log res multiplied by 3 a layer, or does it fall by a constant?

    `given` is a function or a list of them, as for `residuals`, or a model of Hugging Face that is built like BERT (options `variant`,
    `text`, `length`, `config`). Without it the network is made of the components that `parts` names, `normaliser="l2", residual="add"`:
    attention alone, unless they say otherwise. Networks of components and models have no rounding floor.
    """
    if is_model(given):
        from rankfall.api.models import law_rows

        rows = law_rows(given, samples=samples, seed=seed, **parts)
        if not rows:
            raise RankfallError(
                "the law is known for post-norm models like BERT, RoBERTa, ALBERT, DistilBERT; `residuals` is for any"
            )
        return by_layer(rows, "centred", "")
    if given is None:
        from rankfall.measures.law import law

        whole_numbers(samples=samples, tokens=tokens)
        network = network_of(architecture(parts, depth=depth, width=width, heads=heads), 1, tokens, seed)
        inputs = drawn_states(1, samples, tokens, width, seed)
        data = SimpleNamespace(test=SimpleNamespace(inputs=inputs))
        rows = law(SimpleNamespace(network=network, data=data), samples=samples)  # type: ignore[arg-type]
        return by_layer(rows, rows[-1]["method"], rows[-1]["method_reason"])
    if parts:
        raise RankfallError(
            f"parts of an architecture ({', '.join(parts)}) are for a network of components, not for functions"
        )
    return of_layers(
        layers_of(cast(Any, given), depth, 1, width, heads, seed), drawn_states(1, samples, tokens, width, seed)
    )


def by_layer(rows: list[dict[str, Any]], method: str, reason: str) -> Law:
    """Means over the rows of a layer that have a number."""
    depth = max(row["layer"] for row in rows)
    columns: dict[str, list[float | None]] = {"log10_residual": [], "exponent": []}
    for name, column in columns.items():
        for layer in range(depth + 1):
            chosen = [row for row in rows if row["layer"] == layer and not row.get("floor")]
            values = [row[name] for row in chosen if row.get(name) is not None]
            column.append(sum(values) / len(values) if values else None)
    return Law(**columns, method=method, reason=reason)


def of_layers(layers: list[Layer], x: Tensor) -> Law:
    """The law of functions, from plain float64 passes, as far as they resolve it. x (1, B, T, D)."""
    _, samples, tokens, width = x.shape
    signs = drawn_states(1, samples, tokens, width, seed=1).sign()
    other = x * (1 + UNITS * torch.finfo(x.dtype).eps * signs)  # a second pass that rounds differently
    logs: list[float | None] = [relative_residual(x).log10().mean().item()]
    exponents: list[float | None] = [None]
    for number, layer in enumerate(layers, 1):
        after, shaken = finite(layer(x), f"layer {number} returns"), layer(other)
        rest = residual(x)
        smaller = layer(x - (1 - SMALLER) * rest)  # the same common row, R smaller
        moved = apart(residual(after), residual(shaken), "composite")  # (1, B), the share that is rounding
        clear = ~at_floor(relative_residual(after), after.dtype) & (moved <= NOISE)
        sizes = [matrix_norm(residual(state), "composite") for state in (after, smaller)]  # (1, B)
        change = (sizes[0] / sizes[1]).log() / -math.log(SMALLER)
        logs.append(mean(relative_residual(after).log10(), clear))
        exponents.append(mean(change, clear & (moved <= STEADY)))
        x, other = after, shaken
    lost = any(value is None for value in logs)
    return Law(logs, exponents, "float64", "float64 resolves nothing smaller" if lost else "")


def mean(values: Tensor, chosen: Tensor) -> float | None:
    return values[chosen].mean().item() if bool(chosen.any()) else None
