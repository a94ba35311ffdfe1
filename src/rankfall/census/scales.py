"""How large branches are beside the state that they are added to, by what the state is multiplied, and how large weights begin."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from rankfall.models.modules.examine import Examined
from rankfall.models.modules.flow import CROSS, Branch, Flow
from rankfall.models.modules.passes import Edits, run_through

SAME = 1e-9  # of a state: what differs by less is proportional


@dataclass
class Scales:
    """By layer (0-based): the size of what mixes tokens, and of what does not, over the size of the state; None where there is none."""

    mixing: list[float | None]
    tokenwise: list[float | None]
    skip: float | None  # the factor of the state from one addition to the next; None where a norm stands between


def scales(examined: Examined, flow: Flow) -> Scales:
    ratios: dict[tuple[int, bool], list[float]] = {}
    factors: list[float] = []
    last: list[Tensor] = []

    def keep(branch: Branch, state: Tensor, value: Tensor) -> None:
        if branch.kind != CROSS:
            ratios.setdefault((branch.layer, branch.mixes), []).append(float(size(value) / size(state)))
        if last and (factor := factor_of(last[0], state)) is not None:
            factors.append(factor)
        last[:] = [(state + value if flow.skips else value).clone()]

    run_through(examined.model, examined.arguments, flow, Edits(edit=keep))

    def by_layer(mixes: bool) -> list[float | None]:
        found = [ratios.get((layer, mixes)) for layer in range(1, flow.depth + 1)]
        return [finite(sum(one) / len(one)) if one else None for one in found]

    return Scales(by_layer(True), by_layer(False), median(factors) if factors and flow.skips else None)


def finite(value: float) -> float | None:
    return value if value - value == 0 else None


def size(x: Tensor) -> Tensor:
    return x.double().pow(2).mean().sqrt().clamp_min(1e-300)


def factor_of(before: Tensor, after: Tensor) -> float | None:
    """c, where after = c before."""
    if before.numel() != after.numel():
        return None
    x, y = before.reshape(-1).double(), after.reshape(-1).double()
    square = x @ x
    if float(square) == 0:
        return None
    c = (x @ y) / square
    return float(c) if float((y - c * x).norm()) <= SAME * float(y.norm()) else None


@dataclass
class Drawn:
    """Standard deviations of the weight matrices of a stream's layers: the median, and it times sqrt(fan in)."""

    deviation: float | None
    scaled: float | None
    least: float | None
    most: float | None


def find_scales(examined: Examined, flow: Flow) -> Drawn:
    """Of matrices that are not constant."""
    known = dict(examined.model.named_modules())
    parts = [known[name] for name in dict.fromkeys(flow.layers) if name in known] or [examined.model]
    found: list[tuple[float, float]] = []
    seen: set[int] = set()
    for part in parts:
        for parameter in part.parameters():
            if parameter.dim() < 2 or id(parameter) in seen or not parameter.is_floating_point():
                continue
            seen.add(id(parameter))
            deviation = float(parameter.detach().double().std(unbiased=False))
            fan_in = parameter[0].numel() if parameter.dim() != 3 else min(parameter.shape[1:])
            if deviation > 0 and torch.isfinite(torch.tensor(deviation)):
                found.append((deviation, deviation * fan_in**0.5))
    if not found:
        return Drawn(None, None, None, None)
    deviations = [one for one, _ in found]
    return Drawn(median(deviations), median(two for _, two in found), min(deviations), max(deviations))
