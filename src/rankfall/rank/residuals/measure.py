"""Distance of each layer's states from rank one: residuals in several norms and about two centres, and singular values.

The quantities are computed in float64 from the trained (or untrained) weights, over the first test samples, as mean and standard
deviation over samples. States are taken after every block ("state") and, where norms are modules, before and after each of them, since a
norm changes the value without changing the rank. `floor_share` is the share of samples whose value is rounding: within a few units of
float64, or changed by a tenth in a second pass whose states are changed by a few units. The measure `law` resolves values below this
floor. Sentinels are left out. A state that leaves the range of float64 is carried by powers of two if its layer allows that exactly
(`rank/carried.py`). Otherwise there are no values from there on, and `value_reason` says so: a state that underflows has not collapsed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from rankfall.measure.context import Context
from rankfall.measure.shared import in_float64, strip_sentinels
from rankfall.nets.network import Network
from rankfall.rank import residual
from rankfall.rank.carried import Carried, Step, begin, carry_through, repeat_step
from rankfall.rank.powers import TOO_SMALL, exponent_of, reason_of
from rankfall.rank.rounding import NOISE, norms_in, relative_differences, same_size, second_difference, shaken

STATE = "state"


@torch.no_grad()
def residuals(
    context: Context,
    *,
    samples: int = 8,
    norms: list[Literal["composite", "frobenius", "l1", "linf", "spectral"]] = ["composite", "frobenius", "l1", "linf"],
    best: bool = True,
) -> list[dict[str, Any]]:
    """Measure every layer.

    `best`: also about the centre that minimises the norm, by an approximate search (states only, because it is slow).
    """
    network, inputs = in_float64(context, samples)
    rows: list[dict[str, Any]] = []
    steps: list[tuple[Step, list[Carried]]] = []
    first = list(places(network, inputs, steps))
    with shaken(network):
        second = list(places(network, inputs, steps, repeat=True))
    reasons = [reason_of(carried.unit[0], lost=carried.lost[0]) for _, _, carried in first]
    passes = [(layer, place, *units(state, moved)) for (layer, place, state), (_, _, moved) in zip(first, second)]
    about_best: list[dict[str, Tensor]] = []
    if best:  # all layers in one search, which ends for each matrix separately, instead of a search per layer
        whole = residual.best_residuals(torch.stack([x.unit for _, place, x, _ in passes if place == STATE]), norms)
        about_best = [{norm: rest[number] for norm, rest in whole.items()} for number in range(len(network.blocks) + 1)]
    for (layer, place, state, moved), reason in zip(passes, reasons):
        of_best = about_best[layer] if best and place == STATE else {}
        for labels, values, floor in quantities(state, moved, norms, of_best):
            mean, deviation = values.mean(), values.std() if values.numel() > 1 else torch.zeros(())
            known = bool(mean.isfinite())
            numbers: dict[str, Any] = {"value": mean.item() if known else None}
            numbers["deviation"] = deviation.item() if known else None
            numbers["floor_share"] = None if floor is None or not known else floor.double().mean().item()
            about = {"layer": layer, "place": place, **labels}
            rows.append(about | numbers | {"value_reason": "" if known else reason or TOO_SMALL})
    return rows


def places(
    network: Network, inputs: Tensor, steps: list[tuple[Step, list[Carried]]], repeat: bool = False
) -> Iterator[tuple[int, str, Carried]]:
    """Yield (layer, place, states of the tokens (K, B, T, D)): all block outputs, and the inputs and outputs of every norm.

    The powers of two that carry states are appended to `steps`, or followed if the pass repeats another.
    """
    recorded: list[tuple[str, Tensor]] = []
    names: list[str] = []

    def record(name: str, _: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        recorded.extend([(f"before {name}", args[0]), (f"after {name}", output)])

    def select_tokens(state: Carried) -> Carried:
        return replace(state, unit=strip_sentinels(network, state.unit))

    def step(function: Callable[[Tensor], Any], state: Carried, rows: Callable[[Tensor], Tensor]) -> list[Carried]:
        def run(x: Tensor) -> list[Tensor]:
            recorded.clear()
            last = function(x)
            names[:] = numbered([place for place, _ in recorded])
            return [*(state for _, state in recorded), last]

        if repeat:
            return repeat_step(run, state, *steps.pop(0))
        after, powers = carry_through(run, state, rows)
        steps.append((powers, after))
        return after

    norms = [norm for owner in (network, *network.blocks) for norm in norms_in(owner)]
    hooks = [module.register_forward_hook(partial(record, name)) for name, module in norms]
    try:
        x = network.lift(inputs)
        for place, y in recorded:
            yield 0, place, select_tokens(begin(y))
        state = begin(x)
        yield 0, STATE, select_tokens(state)
        for layer, block in enumerate(network.maps(), 1):
            *inside, state = step(block, state, partial(strip_sentinels, network))
            yield from ((layer, place, select_tokens(inner)) for place, inner in zip(names, inside))
            yield layer, STATE, select_tokens(state)
        *inside, _ = step(lambda x: network.norm_out(network.narrow(x)), select_tokens(state), lambda x: x)
        yield from ((len(network.blocks), place, inner) for place, inner in zip(names, inside))
    finally:
        for hook in hooks:
            hook.remove()


def numbered(places: Sequence[str]) -> list[str]:
    """Return distinct names of places: further calls of a norm within a layer get the number of the call."""
    return [
        place if (call := places[: index + 1].count(place)) == 1 else f"{place}, call {call}"
        for index, place in enumerate(places)
    ]


def units(state: Carried, other: Carried) -> tuple[Carried, Tensor]:
    """Return a state without its size, zero where it is lost, and the state of a pass with changed rounding at the same scale."""
    lost = state.lost | ~other.unit.isfinite().flatten(-2).all(-1)
    x, moved = (torch.where(lost[..., None, None], 0.0, carried.unit) for carried in (state, other))
    exponent = state.exponent + exponent_of(x)
    x, moved = same_size(x, moved)
    return Carried(x, exponent, lost), moved


def quantities(
    state: Carried, moved: Tensor, norms: Sequence[str], about_best: dict[str, Tensor]
) -> Iterator[tuple[dict[str, str | None], Tensor, Tensor | None]]:
    """Yield (labels, values (K, B), NaN where undefined, whether each is rounding noise) for the units of states (K, B, T, D).

    `moved`: the units of a pass with changed rounding. `about_best`: residuals about the best centres, for the norms for which these are
    wanted.
    """
    x = state.unit
    about_mean, shaken_mean = residual.residual(x), residual.residual(moved)
    singular, sizes = residual.singular_values(x), residual.matrix_norms(x, norms)
    rests = {"mean": residual.matrix_norms(about_mean, norms)}
    rests["best"] = {norm: residual.matrix_norm(rest, norm) for norm, rest in about_best.items()}
    noise = relative_differences(about_mean, shaken_mean, norms)  # about the mean, and used for both centres
    for norm in norms:
        for centre in ("mean", "best") if norm in about_best else ("mean",):
            rest = rests[centre][norm]
            relative = residual.share(rest, sizes[norm])
            floor = residual.at_floor(relative, x.dtype) | (noise[norm] > NOISE)
            yield row_labels("residual", norm, centre), relative, floor
            yield row_labels("absolute_residual", norm, centre), state.absolute(rest), floor
    ratio = residual.sigma_ratio(x, singular)
    yield row_labels("sigma_ratio"), ratio, residual.at_floor(ratio, x.dtype) | (second_difference(x, moved) > NOISE)
    yield row_labels("stable_rank"), residual.stable_ranks(x, singular)[0], None
    yield row_labels("numerical_rank"), state.mask_lost(residual.numerical_rank(x, values=singular).to(x.dtype)), None


def row_labels(quantity: str, norm: str | None = None, centre: str | None = None) -> dict[str, str | None]:
    return {"quantity": quantity, "matrix_norm": norm, "centre": centre}
