"""How far each layer's states are from rank one: residuals in several norms and about two centres, and singular values.

Everything is computed in float64 from the trained (or untrained) weights, over the first test samples: mean and standard deviation over
samples. States are taken after every block ("state") and, where norms are modules, before and after each of them, since a norm changes the
value without changing the rank. `floor_share` is the share of samples whose value is rounding: within a few units of float64, or changed
by a tenth in a second pass whose states are changed by a few units. The measure `law` resolves values below this floor. Sentinels are left
out.
"""

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from rankfall.rank import residual
from rankfall.rank.rounding import NOISE, apart, second_apart, shaken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankfall.measures._context import Context
    from rankfall.nets.network import Network

TABLE = "residuals"
NEEDS = "cells"
STATE = "state"


@torch.no_grad()
def residuals(
    context: "Context",
    *,
    samples: int = 8,
    norms: list[str] = ["composite", "frobenius", "l1", "linf"],
    best: bool = True,
) -> list[dict[str, Any]]:
    """`best`: also about the centre that minimises the norm, found by an approximate search (states only, because it is slow)."""
    made = copy.deepcopy(context.network).double()
    inputs = context.data.test.inputs[:, :samples]
    inputs = inputs.double() if inputs.is_floating_point() else inputs
    rows, again = [], copy.deepcopy(made)
    with shaken(again):
        passes = list(zip(places(made, inputs), places(again, inputs)))
    about_best: list[dict[str, Tensor]] = []
    if best:  # of all layers at once, and each matrix by itself: one search of many small steps instead of one a layer
        whole = residual.best_residuals(torch.stack([x for (_, place, x), _ in passes if place == STATE]), norms)
        about_best = [{norm: rest[number] for norm, rest in whole.items()} for number in range(len(made.blocks) + 1)]
    for (layer, place, x), (_, _, other) in passes:
        for labels, values, floor in quantities(x, other, norms, about_best[layer] if best and place == STATE else {}):
            mean, deviation = values.mean(1), values.std(1) if values.shape[1] > 1 else torch.zeros_like(values[:, 0])
            for member in range(len(inputs)):
                found = {
                    "value": mean[member].item(),
                    "deviation": deviation[member].item(),
                    "floor_share": None if floor is None else floor[member].double().mean().item(),
                }
                rows.append({"member": member, "layer": layer, "place": place} | labels | found)
    return rows


def places(network: "Network", inputs: Tensor) -> Iterator[tuple[int, str, Tensor]]:
    """(layer, place, states of the tokens (K, B, T, D)): all block outputs, and the inputs and outputs of every norm."""
    seen: list[tuple[str, Tensor]] = []
    hooks = []

    def watch(name: str, module: nn.Module) -> None:
        def record(_: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
            seen.extend([(f"before {name}", args[0]), (f"after {name}", output)])

        hooks.append(module.register_forward_hook(record))

    def tokens(x: Tensor) -> Tensor:
        return x if network.sentinels is None else network.sentinels.strip(x)

    def taken(layer: int) -> Iterator[tuple[int, str, Tensor]]:
        for place, x in seen:
            yield layer, place, tokens(x)
        seen.clear()

    for name, module in network.named_children():
        if name.startswith("norm"):
            watch(name, module)
    for block in network.blocks:
        for name, module in block.named_children():
            if name.startswith("norm"):
                watch(name, module)
    try:
        x = network.lift(inputs)
        yield from taken(0)
        yield 0, STATE, tokens(x)
        for layer, block in enumerate(network.blocks, 1):
            x = block(x)
            yield from taken(layer)
            yield layer, STATE, tokens(x)
        network.readout(x)
        # The head of a network with sentinels strips them itself; so the states at its last norm have none.
        for place, y in seen:
            yield len(network.blocks), place, y
    finally:
        for hook in hooks:
            hook.remove()


def quantities(
    x: Tensor, other: Tensor, norms: "Sequence[str]", about_best: dict[str, Tensor]
) -> Iterator[tuple[dict[str, str | None], Tensor, Tensor | None]]:
    """(labels, values (K, B), whether each is rounding noise) of states (K, B, T, D), given the same states of a pass with changed
    rounding. `about_best`: their residuals about the best centres, of the norms for which these are wanted.
    """
    about_mean, shaken_mean = residual.residual(x), residual.residual(other)
    singular = torch.linalg.svdvals(x)
    for norm in norms:
        noise = apart(about_mean, shaken_mean, norm) > NOISE  # computed about the mean and used for both centres
        for centre in ("mean", "best") if norm in about_best else ("mean",):
            rest = residual.matrix_norm(about_mean if centre == "mean" else about_best[norm], norm)
            size = residual.matrix_norm(x, norm)
            relative = residual.share(rest, size)
            floor = residual.at_floor(relative, x.dtype) | noise
            yield labelled("residual", norm, centre), relative, floor
            yield labelled("absolute_residual", norm, centre), rest, floor
    ratio = residual.sigma_ratio(x, singular)
    yield labelled("sigma_ratio"), ratio, residual.at_floor(ratio, x.dtype) | (second_apart(x, other) > NOISE)
    yield labelled("stable_rank"), residual.stable_rank(x, singular), None
    yield labelled("numerical_rank"), residual.numerical_rank(x, values=singular).to(x.dtype), None


def labelled(quantity: str, norm: str | None = None, centre: str | None = None) -> dict[str, str | None]:
    return {"quantity": quantity, "matrix_norm": norm, "centre": centre}
