"""The check of gradients."""

from collections import defaultdict

import torch

from rankfall.check.layer import number
from rankfall.check.named import Limit, Result, failed, named, passed, skipped, warned
from rankfall.check.recording import Recording
from rankfall.streams.arguments import call_model
from rankfall.streams.record import tensors_in

STEEP = Limit(
    10,
    "a gradient of the first state above this multiple of that of the last, or below its inverse, warns",
    "our choice: an optimiser step of the right size for one end is ten times too large or small for the other",
)
BROKEN = Limit(
    1000,
    "above this multiple, or below its inverse, it fails",
    "our choice: bfloat16, with 8 bits, cannot add such gradients",
)


@named("gradients-flow", STEEP, BROKEN)
def gradients_flow(seen: Recording) -> Result:
    """Does the gradient reach every layer and parameter, neither exploding nor vanishing?

    The gradient of <V, X_L> for random V at the first state, over that at the last. It counts as steep only if it is so relative to the
    states' lengths, too, since states a hundred times as long have gradients a hundred times as small. Then every parameter matrix in
    the layers must have a gradient of a random projection of the output; one that has none in any layer fails.
    """
    layers = seen.report.layers
    size = layers[0].gradient
    if size is None:
        return skipped(seen.report.reasons.get("gradients", "the first state cannot be differentiated"))
    lost = parameters_without(seen)
    if lost:
        return failed(
            f"{len(lost)} parameters of the layers get no gradient in any layer: {', '.join(lost[:3])}", lost[0]
        )
    relative = size * seen.report.shorter
    said = f"at the first state {number(size)} times that of the last, {number(relative)} relative to the states"
    queries = [layer.query_gradient for layer in layers if layer.query_gradient is not None]
    if queries:
        said += f"; of queries {min(queries):.1g} to {max(queries):.1g}"
    way = "explodes" if size > 1 else "vanishes"
    if is_steep(size, relative, BROKEN):
        return failed(f"it {way} on the way back: {said}")
    return warned(f"it {way} on the way back: {said}") if is_steep(size, relative, STEEP) else passed(said)


def is_steep(size: float, relative: float, limit: float) -> bool:
    """Return whether a gradient explodes or vanishes, absolutely and relative to the lengths of the states, in the same direction."""
    outside = [not 1 / limit <= one <= limit for one in (size, relative)]
    return all(outside) and (size > 1) == (relative > 1)


def parameters_without(seen: Recording) -> list[str]:
    """Return the matrices in the layers that get no gradient, in no layer and in no expert of it. Branches of zeros explain theirs."""
    model = seen.examined.model
    if any(not one.value for one in seen.additions):
        return []
    inside = tuple(f"{name}." for name in seen.flow.layers if name)
    named = [(name, one) for name, one in model.named_parameters() if name.startswith(inside) and one.dim() > 1]
    generator = torch.Generator().manual_seed(0)
    with torch.enable_grad():
        for _, one in named:
            one.requires_grad_(True)
        tensors = [one for _, one in tensors_in(call_model(model, seen.examined.arguments)) if one.requires_grad]
        loss = sum((one * torch.randn(one.shape, generator=generator).to(one)).sum() for one in tensors)
        if not named or not isinstance(loss, torch.Tensor):
            return []
        found = torch.autograd.grad(loss, [one for _, one in named], allow_unused=True)
    alike: dict[str, list[tuple[str, bool]]] = defaultdict(list)
    for (name, _), gradient in zip(named, found):
        kind = ".".join("#" if part.isdigit() else part for part in name.split("."))
        alike[kind].append((name, gradient is not None and bool(gradient.any())))
    return [group[0][0] for group in alike.values() if not any(reached for _, reached in group)]
