"""`residuals`: how far the tokens' states are from being equal, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor

from rankfall.api.layers import drawn_states, finite, layers_of
from rankfall.errors import RankfallError
from rankfall.rank.residual import NORMS, relative_residual

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@overload
def residuals(  # type: ignore[overload-overlap]  # a model can be called as well
    given: str | PreTrainedModel, **options: Any
) -> dict[str, list[float]]: ...
@overload
def residuals(
    given: Callable[..., Any] | Sequence[Callable[..., Any]],
    states: Tensor | None = None,
    *,
    depth: int = 6,
    samples: int = 4,
    tokens: int = 32,
    width: int = 64,
    heads: int = 4,
    norm: str = "composite",
    seed: int = 0,
) -> list[float]: ...


@torch.no_grad()
def residuals(
    given: Any,
    states: Tensor | None = None,
    *,
    depth: int = 6,
    samples: int = 4,
    tokens: int = 32,
    width: int = 64,
    heads: int = 4,
    norm: str = "composite",
    seed: int = 0,
    **options: Any,
) -> list[float] | dict[str, list[float]]:
    """|res(X)| / |X| of the states at layers 0 .. L: 1 for unrelated tokens, 0 for equal ones; means over samples.

    `given` is an attention function f(q, k, v), used `depth` times with random maps; a function of states, or a list of them, such as
    the blocks of a network; or a model of Hugging Face, by name or as an object, for which the answer has a list for each variant: whole,
    and without skip connections or MLPs (docs/models.md). `states` (B, T, D) are drawn if there are none; of a model, `samples` texts
    of `length` tokens from `text`. All is computed in float64, where what is below 4e-15 is rounding.
    """
    if is_model(given):
        from rankfall.api.models import residuals_of

        return residuals_of(given, samples=samples, norm=norm, **options)
    if options:
        raise TypeError(f"residuals() of functions has no option {next(iter(options))!r}")
    if norm not in NORMS:
        raise RankfallError(f"there is no norm {norm!r}: {', '.join(NORMS)}")
    if states is not None:
        states = checked(states)
        width = states.shape[-1]
    layers = layers_of(given, depth, 1, width, heads, seed)
    x = drawn_states(1, samples, tokens, width, seed) if states is None else states.unsqueeze(0)
    found = [relative_residual(x, norm).mean().item()]
    for number, layer in enumerate(layers, 1):
        x = finite(layer(x), f"layer {number} returns")  # (1, B, T, D)
        found.append(relative_residual(x, norm).mean().item())
    return found


def checked(states: Any) -> Tensor:
    """States (B, T, D) in float64."""
    if not isinstance(states, Tensor) or states.ndim != 3 or not states.numel() or states.is_complex():
        found = f"{tuple(states.shape)}, {states.dtype}" if isinstance(states, Tensor) else type(states).__name__
        raise RankfallError(
            f"states must be a tensor of real numbers (samples, tokens, width), at least one of each, not {found}"
        )
    return finite(states.double(), "states have")


def is_model(given: Any) -> bool:
    """A name, or a model with a configuration that says of which type it is."""
    return isinstance(given, str) or hasattr(getattr(given, "config", None), "model_type")
