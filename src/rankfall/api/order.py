"""`order_of_contraction`: how fast one layer of attention makes similar rows more similar."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, overload

import torch

from rankfall.api.layers import (
    architecture,
    arguments,
    check_seed,
    check_whole_numbers,
    draw_states,
    layer_of,
    refuse_unused,
    steady,
)
from rankfall.errors import RankfallError
from rankfall.streams.arguments import keep_random_state


@dataclass(frozen=True)
class Order:
    """The exponent p in res_out ~ C res_in^p for nearly identical rows; None, with the reason, if no power law fits."""

    order: float | None
    uncertainty: float | None  # from the fit and over the draws
    decades: float | None  # the range of the fit
    method: str  # centred: without a rounding floor; float64: plain passes
    reason: str

    def __str__(self) -> str:
        if self.order is None:
            return f"no order: {self.reason}"
        text = f"order {self.order:.2f} +- {self.uncertainty or 0:.0e} over {self.decades or 0:.0f} decades"
        return f"{text} ({self.reason})" if self.reason else text


@overload
def order_of_contraction(attention: torch.nn.Module, inputs: Any, *, blocks: Any = None) -> dict[str, Order]: ...
@overload
def order_of_contraction(
    attention: Callable[..., Any] | str | Mapping[str, Any] | None = None,
    *,
    draws: int = 8,
    tokens: int = 6,
    width: int = 8,
    heads: int | None = None,
    seed: int | None = None,
    **parts: Any,
) -> Order: ...


@torch.no_grad()
def order_of_contraction(
    attention: Any = None,
    inputs: Any = None,
    *,
    blocks: Any = None,
    draws: int | None = None,
    tokens: int | None = None,
    width: int | None = None,
    heads: int | None = None,
    seed: int | None = None,
    **parts: Any,
) -> Order | dict[str, Order]:
    """Measure the order of contraction of one layer. 3: rank is lost doubly exponentially with depth; 1: exponentially; 0: rows come out
    different however similar they went in.

    `attention` is a function of queries, keys and values (N, H, T, d), with 2 heads by default, or a function of states (N, T, D). If it is
    None or the name of a component (`attention="gau"`), the layer is built from the components in `parts`, such as `normaliser="l2",
    position="rope"`, and measured without a rounding floor. Defaults: `draws` 8, `tokens` 6, `width` 8.

    A module with an example of its `inputs`, as for `residuals`, has an order for each branch that mixes tokens, measured on its own states
    that are moved close together; the result is a dict. `blocks` names its layers if they cannot be detected.
    """
    if inputs is not None or blocks is not None or hasattr(getattr(attention, "config", None), "model_type"):
        refuse_unused(
            "a module with inputs has its own", draws=draws, tokens=tokens, width=width, heads=heads, seed=seed
        )
        refuse_unused("a module with inputs has its own parts", **parts)
        fits = orders_of_module(attention, inputs, blocks)
        return {name: order_from(fit, "") for name, fit in fits.items()}
    sizes = ((draws, 8), (tokens, 6), (width, 8))
    draws, tokens, width = (default if size is None else size for size, default in sizes)
    from rankfall.rank.centred.scaled import begin
    from rankfall.rank.orders.slopes import measure_slopes, near_fit, relative

    count = 2 if heads is None else heads
    check_whole_numbers(draws=draws, tokens=tokens, width=width, heads=count)
    note = ""
    if isinstance(attention, str | Mapping):
        attention, parts = None, parts | {"attention": attention}
    if attention is None:
        design = architecture(parts, width=width, heads=count, depth=1)
        with keep_random_state():
            fit = measure_slopes(design, True, draws, tokens, check_seed(seed))[0]
    elif parts:
        names = ", ".join(parts)
        raise RankfallError(
            f"parts of an architecture ({names}) are for a layer made of components, not for a function"
        )
    else:
        with keep_random_state():
            function = steady(attention)
            layer = layer_of(function, draws, width, count, check_seed(seed))
            if arguments(function.function) == 1:
                refuse_unused("only attention functions f(q, k, v) have heads here", heads=heads)
            state = begin(SimpleNamespace(sentinels=None), draw_states(draws, 1, tokens, width, check_seed(seed)))  # type: ignore[arg-type]
            fit = near_fit(layer, state, relative)
        note = function.note
    return order_from(fit, note)


def order_from(fit: Mapping[str, Any], note: str) -> Order:
    """Convert the result of a fit to an `Order`."""
    reason = "; ".join(filter(None, [fit["reason"], note]))
    return Order(**{name: fit[name] for name in ("order", "uncertainty", "decades", "method")}, reason=reason)


def orders_of_module(module: Any, inputs: Any, blocks: Any = None) -> dict[str, dict[str, Any]]:
    """Return layer and branch -> result of the fit, in order of computation."""
    from rankfall.api.models import examine_module, name_of
    from rankfall.check.orders import slopes

    examined = examine_module(module, inputs, blocks)
    fits: dict[str, dict[str, Any]] = {}
    with keep_random_state(), torch.no_grad():
        for flow in examined.flows:
            for number, fit in slopes(examined, flow).items():
                branch = flow.branches[number]
                layer = flow.layers[branch.layer - 1] or f"layer {branch.layer}"
                name = name_of(flow.name if len(examined.flows) > 1 else "", f"{layer} {branch.name}".strip())
                fits[f"{name} ({number})" if name in fits else name] = fit
    if not fits:
        raise RankfallError(f"{examined.name}: no branch of it mixes tokens, so none has an order of contraction")
    return fits
