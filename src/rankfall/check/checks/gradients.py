"""The check of gradients."""

import torch

from rankfall.check.layer import number
from rankfall.check.named import Limit, Result, failed, named, passed, skipped, warned
from rankfall.check.recording import RecordedStream
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
def gradients_flow(seen: RecordedStream) -> Result:
    """Does the gradient reach every layer and parameter, neither exploding nor vanishing?

    The gradient of <V, X_L> for random V at the first state, over that at the last. It counts as steep only if it is so relative to the
    states' lengths, too, since states a hundred times as long have gradients a hundred times as small. Then the parameter matrices must
    have a gradient of a random projection of the output. A matrix of a module that runs and has none is detached, and fails; one of a
    module that does not run, such as an expert without tokens, warns.
    """
    layers = seen.report.layers
    size = layers[0].gradient
    if size is None:
        return skipped(seen.report.reasons.get("gradients", "the first state cannot be differentiated"))
    lost = parameters_without(seen)
    called = sorted(name for name in lost if name.rpartition(".")[0] in seen.called)
    if called and all(one.value for one in seen.additions):
        return failed(
            f"{len(called)} parameters are used and get no gradient, {called[0]} first: is it detached?", called[0]
        )
    relative = size * seen.report.shorter
    said = f"{number(size)} times as large at the first state as at the last, {number(relative)} relative to the states"
    queries = [layer.query_gradient for layer in layers if layer.query_gradient is not None]
    if queries:
        said += f"; at queries {min(queries):.1g} to {max(queries):.1g}"
    way = "explodes" if size > 1 else "vanishes"
    if is_steep(size, relative, BROKEN):
        return failed(f"gradient {way}: {said}")
    if is_steep(size, relative, STEEP):
        return warned(f"gradient {way}: {said}")
    if lost:
        return warned(f"{len(lost)} parameters in the layers get no gradient: {', '.join(sorted(lost)[:3])}", min(lost))
    return passed(f"gradient {said}")


def is_steep(size: float, relative: float, limit: float) -> bool:
    """Return whether a gradient explodes or vanishes, absolutely and relative to the lengths of the states, in the same direction."""
    outside = [not 1 / limit <= one <= limit for one in (size, relative)]
    return all(outside) and (size > 1) == (relative > 1)


def parameters_without(seen: RecordedStream) -> set[str]:
    """Return the matrices in the layers that get no gradient of a random projection of the output. Experts may get no token."""
    model = seen.examined.model
    layers = tuple(f"{name}." for name in seen.flow.layers if name)
    matrices = {name: one for name, one in model.named_parameters() if name.startswith(layers) and one.dim() > 1}
    generator = torch.Generator().manual_seed(0)
    with torch.enable_grad():
        for one in matrices.values():
            one.requires_grad_(True)
        tensors = [one for _, one in tensors_in(call_model(model, seen.examined.arguments)) if one.requires_grad]
        loss = sum((one * torch.randn(one.shape, generator=generator).to(one)).sum() for one in tensors)
        if not matrices or not isinstance(loss, torch.Tensor):
            return set()
        found = torch.autograd.grad(loss, list(matrices.values()), allow_unused=True)
    reached = {name for name, one in zip(matrices, found) if one is not None and bool(one.any())}
    return matrices.keys() - reached
