"""`residuals`: how far the tokens' states are from being equal, layer by layer."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor

from rankfall.api.functions import original
from rankfall.api.layers import (
    Layers,
    check_finite,
    check_options,
    check_seed,
    draw_states,
    layers_of,
    options_of,
    refuse_unused,
)
from rankfall.errors import RankfallError
from rankfall.rank.carried import carry_twice
from rankfall.rank.powers import reason_of
from rankfall.rank.residual import NORMS, at_floor, relative_residual, residual
from rankfall.rank.rounding import NOISE, UNITS, relative_difference
from rankfall.streams.arguments import keep_random_state

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Residuals(list[float | None]):
    """The relative residuals |res(X)| / |X| at layers 0 .. L. None: the state has no residual in its number format; see `reason`."""

    def __init__(self, layers: Iterable[tuple[float | None, bool, str]], note: str = "") -> None:
        """`layers`: value, floor and reason of layers 0 .. L."""
        values, floor, reason = zip(*layers)
        super().__init__(values)
        self.floor: list[bool] = list(floor)  # whether a value is rounding noise
        self.reason: list[str] = list(reason)  # why a value is None; empty for other values
        self.note = note  # what was done without being requested, such as repeating a layer or keeping float64

    def __repr__(self) -> str:
        """Return the numbers as text, with ~ before those that are rounding noise."""
        shown = ["None" if value is None else f"{'~' * low}{value:.3g}" for value, low in zip(self, self.floor)]
        return f"[{', '.join(shown)}]" + (f"  ({self.note})" if self.note else "")


@overload
def residuals(  # type: ignore[overload-overlap]  # a model can be called as well
    given: str | PreTrainedModel, **options: Any
) -> dict[str, Residuals]: ...
@overload
def residuals(
    given: Callable[..., Any] | Sequence[Callable[..., Any]],
    states: Tensor | None = None,
    *,
    depth: int | None = None,
    samples: int | None = None,
    tokens: int | None = None,
    width: int | None = None,
    heads: int | None = None,
    norm: str = "composite",
    seed: int | None = None,
) -> Residuals: ...


@torch.no_grad()
def residuals(
    given: Any,
    states: Tensor | None = None,
    *,
    depth: int | None = None,
    samples: int | None = None,
    tokens: int | None = None,
    width: int | None = None,
    heads: int | None = None,
    norm: str = "composite",
    seed: int | None = None,
    **options: Any,
) -> Residuals | dict[str, Residuals]:
    """Return |res(X)| / |X| of the states at layers 0 .. L, as means over samples: 1 for unrelated tokens, 0 for equal ones.

    `given` is one of these:

    - a module with a residual stream, measured at its own layers with an example of its inputs (a tensor, a tuple of arguments, a dict of
      keyword arguments): `residuals(model, inputs)`; `blocks` names its layers if necessary; the result has a list for each variant
    - an attention function f(q, k, v), applied `depth` times (6) with random maps
    - a function of states, applied `depth` times
    - a list of functions or an `nn.Sequential`, each entry a layer
    - a model of Hugging Face, by name or as an object; it reads `samples` texts of `length` tokens from `text`, and the result has a list
      for each variant: whole, and without skip connections or MLPs (docs/models.md)

    By default `states` (B, T, D) are drawn, with `samples` (4), `tokens` (32) and `width` (64). Modules are measured as copies. All is
    computed in float64, and rounding noise is marked by `floor` and by ~ in print.
    """
    if not isinstance(norm, str) or norm not in NORMS:
        raise RankfallError(f"there is no norm {norm!r}: {', '.join(NORMS)}")
    inputs, blocks = options.pop("inputs", None), options.pop("blocks", None)
    arguments = {"depth": depth, "samples": samples, "tokens": tokens, "width": width, "heads": heads, "seed": seed}
    if inputs is not None or blocks is not None or has_inputs(given, states, arguments):
        if inputs is not None:
            refuse_unused("inputs are given", states=states)
        by_variant = module_residuals(given, states if inputs is None else inputs, norm, blocks, inputs is None)
        if by_variant is not None:
            refuse_unused("a module with inputs has its own", **arguments)
            return by_variant
    if is_model(given):
        from rankfall.api.models import residuals_of

        refuse_unused("a model has its own", states=states, depth=depth, tokens=tokens, width=width, heads=heads)
        with keep_random_state():
            check_options("residuals() of a model", options, options_of(residuals_of))
            return residuals_of(given, samples=4 if samples is None else samples, norm=norm, seed=seed, **options)
    if options:
        check_options("residuals() of functions", options, options_of(residuals))
    if states is not None:
        refuse_unused("the states that are given have their own", samples=samples, tokens=tokens, width=width)
        states = check_states(states)
        width = states.shape[-1]
    with keep_random_state():
        stack = layers_of(
            given, depth, 1, 64 if width is None else width, 4 if heads is None else heads, check_seed(seed)
        )
        if not stack.drawn:
            refuse_unused("only attention functions f(q, k, v) have heads here", heads=heads)
        if not stack.drawn and states is not None:
            refuse_unused("nothing is drawn: there are states, and layers with weights of their own", seed=seed)
        if stack.repeated and depth is None:
            warnings.warn(f"{stack.repeated}; depth says how often, and a list is a stack", stacklevel=2)
        sizes = (4 if samples is None else samples, 32 if tokens is None else tokens, 64 if width is None else width)
        x = draw_states(1, *sizes, check_seed(seed)) if states is None else states.unsqueeze(0)
        return by_layer(stack, x, norm)


def has_inputs(module: Any, states: Any, sizes: dict[str, Any]) -> bool:
    """Return whether the arguments are a module and an example of its inputs; otherwise they are a layer and its states."""
    module = original(module)
    if not isinstance(module, torch.nn.Module) or states is None or any(size is not None for size in sizes.values()):
        return False
    if isinstance(states, Tensor):
        if states.is_complex() or states.dtype == torch.bool or not states.numel():
            return False
        stack = isinstance(module, torch.nn.Sequential | torch.nn.ModuleList)
        return not (stack and states.dim() == 3 and states.is_floating_point())
    return isinstance(states, Mapping) or (
        isinstance(states, tuple | list) and any(isinstance(value, Tensor) for value in states)
    )


def module_residuals(module: Any, inputs: Any, norm: str, blocks: Any, or_states: bool) -> dict[str, Residuals] | None:
    """Return the residuals of a module along its stream, or None if it has no stream and `inputs` may be the states of a layer."""
    from rankfall.api.models import examine_module, residuals_of_examined
    from rankfall.streams.arguments import NoStream

    try:
        return residuals_of_examined(examine_module(module, inputs, blocks), norm)
    except NoStream:
        if or_states and blocks is None and isinstance(inputs, Tensor) and inputs.is_floating_point():
            return None
        raise


def by_layer(stack: Layers, x: Tensor, norm: str) -> Residuals:
    """Measure layer by layer. A second pass rounds differently, and its difference from the first is noise. x (1, B, T, D)"""
    rows = []
    for number, (state, other, _) in enumerate(carry_twice(stack.checked(), stack.layers, x, shake(x))):
        relative = state.mask_lost(relative_residual(state.unit, norm))  # (1, B)
        low = at_floor(relative, x.dtype)
        if number:
            low |= relative_difference(residual(state.unit), residual(other.unit), norm) > NOISE
        rows.append(mean_of_samples(relative, low, reason_of(state.unit[0], lost=state.lost[0])))
    return Residuals(rows, stack.note())


def mean_of_samples(relative: Tensor, low: Tensor, reason: str) -> tuple[float | None, bool, str]:
    """Return the mean residual of a layer, whether it is noise, and why it is None. `low`: which samples are noise."""
    value = relative.mean().item()
    return (value, bool(low.double().mean() > 0.5), "") if math.isfinite(value) else (None, False, reason)


def shake(x: Tensor) -> Tensor:
    """Change states (1, B, T, D) by a few units of rounding with random signs."""
    draws, samples, tokens, width = x.shape
    signs = draw_states(draws, samples, tokens, width, seed=1).sign()
    return x * (1 + UNITS * torch.finfo(x.dtype).eps * signs)


def check_states(states: Any) -> Tensor:
    """Check that states are real and finite (B, T, D) and return them in float64 on the CPU."""
    is_tensor = isinstance(states, Tensor)
    if not is_tensor or states.ndim != 3 or not states.numel() or states.is_complex() or states.dtype == torch.bool:
        got = f"{tuple(states.shape)}, {states.dtype}" if is_tensor else type(states).__name__
        expected = "a tensor of real numbers (samples, tokens, width), at least one of each"
        raise RankfallError(f"states must be {expected}, not {got}")
    return check_finite(states.detach().double().cpu().contiguous(), "states have")


def is_model(model: Any) -> bool:
    """Return whether the argument is a model of Hugging Face: a name, or an object whose configuration has a `model_type`."""
    return isinstance(model, str) or hasattr(getattr(model, "config", None), "model_type")
