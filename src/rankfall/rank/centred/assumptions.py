"""Assumptions of centred forms about components, which may be user-written; each is tested on random numbers.

A wrong assumption would give a plausible but wrong residual. Where a test fails, there is no centred form: `Unknown`, with the reason.
At the end, `confirm` compares the states of a network with those of its ordinary forward pass.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rankfall.nets.network import Network
from rankfall.rank.centred.scaled import State
from rankfall.rank.residual import relative_residual, residual
from rankfall.rank.rounding import relative_difference, shaken

SAME = 1e-12  # largest difference of two float64 computations of a value, relative to the largest entry
# Step of difference quotients, and their tolerance to the derivative, which allows for kinks of a few entries.
NEAR, SLOPE = 1e-5, 1e-2
RESOLVED = 1e-6  # an ordinary float64 pass resolves a relative residual above this,
STEADY = 1e-5  # if rounding does not move it by more than this
AGREES = 1e-3  # tolerance between this residual and that of the centred form
FAR_OUT = 100.0  # linear maps are also tested with large numbers, which reveals clipping and saturation


class Unknown(Exception):
    """A component has no known centred form."""


def unbound(component: Any) -> tuple[Any, dict[str, Any]]:
    """Return a function and the options bound to it. A module, or a function without options, is returned as it is."""
    return (component.func, component.keywords) if isinstance(component, partial) else (component, {})


def function_name(component: Any) -> str:
    """Return the name of a function or of a module's class, the same in every run."""
    function = unbound(component)[0]
    function = function if hasattr(function, "__qualname__") else type(function)
    return f"{function.__module__}:{function.__qualname__}"


def draw_like(like: Tensor, seed: int = 0) -> Tensor:
    """Draw numbers of sizes from 0.1 to 10 in the shape of another tensor, the same in every run."""
    generator = torch.Generator().manual_seed(seed)
    sizes = 10 ** (2 * torch.rand(like.shape, generator=generator, dtype=torch.float64) - 1)
    return (sizes * torch.randn(like.shape, generator=generator, dtype=torch.float64)).to(like)


def same(first: Tensor, second: Tensor, terms: Tensor | None = None) -> bool:
    """Check whether tensors are equal up to rounding, for each member (K, ...) separately. NaN in one member does not affect the others.

    `terms`: the terms whose sum is `second`, if they may cancel.
    """
    if first.shape != second.shape:
        return False
    size = (second if terms is None else terms).abs().flatten(1).amax(1).view(-1, *[1] * (second.dim() - 1))
    return not bool(((first - second).abs() > SAME * size).any())


def factors(join: Callable[[Tensor, Tensor], Tensor], like: Tensor) -> tuple[Tensor, Tensor]:
    """Return keep and take (K, B, 1, D) of join(X, F) = keep X + take F, for states like (K, B, T, D).

    Raise `Unknown` if join is not linear.
    """
    x, f, ones, zeros = (
        FAR_OUT * draw_like(like, 0),
        FAR_OUT * draw_like(like, 1),
        torch.ones_like(like),
        torch.zeros_like(like),
    )
    keep, take = join(ones, zeros), join(zeros, ones)
    level = all(bool((factor == factor[..., :1, :]).all()) for factor in (keep, take))
    if not level or not same(join(x, f), keep * x + take * f):
        raise Unknown("the residual is not a X + b F(X) with the same a and b for all tokens: no centred form")
    return keep[..., :1, :], take[..., :1, :]


def token_wise(function: Callable[[Tensor], Tensor], like: Tensor, kind: str) -> None:
    """Raise `Unknown` unless a map of states like (K, B, T, D) treats each token alone and all alike, and torch can differentiate it."""
    x, step = draw_like(like, 0), draw_like(like, 1)
    y, turned = function(x), function(x.roll((1, 1), (1, 2)))
    alone = function(x[:, :1, :1].expand_as(x).contiguous())
    if not same(turned, y.roll((1, 1), (1, 2))) or not same(alone, y[:, :1, :1].expand_as(y)):
        raise Unknown(f"the {kind} does not act on each token alone and on all alike: no centred form")
    try:
        slope = torch.func.jvp(function, (x,), (step,))[1]
    except RuntimeError as error:
        raise Unknown(f"the {kind} has no forward derivative: no centred form") from error
    quotient = (function(x + NEAR * step) - function(x - NEAR * step)) / (2 * NEAR)
    if bool(((slope - quotient).flatten(1).norm(dim=1) > SLOPE * quotient.flatten(1).norm(dim=1)).any()):
        raise Unknown(f"the slope of the {kind} is not its derivative: no centred form")


def adds(bias: Callable[[Tensor], Tensor], share: Tensor) -> bool:
    """Check whether bias(L) = L + share, for scores like (K, 1, H, J, J)."""
    scores = FAR_OUT * draw_like(share)
    return same(bias(scores), scores + share)


def constant_sums(normaliser: Callable[[Tensor], Tensor], allowed: Tensor | None, like: Tensor) -> bool:
    """Check whether rows of weights sum to the same constant for all scores, like (K, B, H, J, J)."""
    scores = draw_like(like)
    scores = scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
    weights = normaliser(scores)
    sums = weights.sum(-1)
    return same(sums, sums[..., :1, :1, :1].expand_as(sums), weights)


def keeps_form(component: Any, family: type | str, *methods: str) -> bool:
    """Check whether a component is of a class whose centred form is known and overrides none of these methods.

    A class may be given by name, as for `find_imported`.
    """
    cls = find_imported(family) if isinstance(family, str) else family
    return (
        isinstance(cls, type)
        and isinstance(component, cls)
        and all(getattr(type(component), method) is getattr(cls, method) for method in methods)
    )


def find_imported(name: str) -> Any:
    """Return the class or function `module:name`, or None if its module is not imported.

    Since the component is looked up by name and not imported, its code is only in the keys of networks that use it.
    """
    module, _, attribute = name.partition(":")
    return getattr(sys.modules.get(module), attribute, None)


def confirm(network: Network, inputs: Tensor, states: list[State]) -> None:
    """Raise `Unknown` unless R agrees with the ordinary pass in all layers where that pass resolves it."""
    plain = network.states(inputs)
    with shaken(network):
        moved = network.states(inputs)
    for layer, (state, x, other) in enumerate(zip(states, plain, moved)):
        x, other = x[..., state.tokens, :], other[..., state.tokens, :]
        rest = residual(x)
        steady = relative_difference(rest, residual(other), "frobenius") < STEADY  # (K, B)
        resolved = steady & (relative_residual(x, "frobenius") > RESOLVED)
        if bool((resolved & (relative_difference(rest, state.rest.value(), "frobenius") > AGREES)).any()):
            raise Unknown(f"the ordinary pass gives another residual at layer {layer}: no centred form")
