"""Interventions on a model, each measured on the model itself: residual by layer and gradient of the input.

Most edit the residual additions of a pass and leave the model unchanged. Scaled weights are set in place, and restored afterwards.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import torch
from torch import Tensor

from rankfall.check.derivative import restored
from rankfall.check.gradients import input_gradient
from rankfall.check.layer import Outcome, finite_mean
from rankfall.rank.residual import relative_residual
from rankfall.streams.cuts import states_of
from rankfall.streams.examine import FAILURES, Examined
from rankfall.streams.flow import CROSS, MIXES, TOKENWISE, Branch, Edit, Edits, Flow

GATE = 0.1  # factor of a branch: small, as that of a gate that training opens
# Factors of the layers' weights. Doubling is not among them: it harmed both networks that were told to (docs/causes.md).
SCALES = (0.25, 0.5)
DOES = {MIXES: "mixes tokens", TOKENWISE: "acts token by token", CROSS: "reads outside the stream"}


def measure_edit(examined: Examined, flow: Flow, name: str, edit: Edit | None) -> Outcome:
    """Return the residual by layer and the gradient of the input with an edit of every addition."""
    states = states_of(examined, flow, Edits(edit=edit))
    with torch.enable_grad():
        gradient = input_gradient(examined, flow, edit)
    return Outcome(name, [finite_mean(relative_residual(state)) for state in states], gradient)


def without_branches(examined: Examined, flow: Flow, layer: int) -> list[Outcome]:
    """Return the outcomes of leaving out each branch of a layer."""
    outcomes = []
    for branch in flow.of_layer(layer):

        def edit(addition: Branch, state: Tensor, value: Tensor, number: int = branch.number) -> Tensor | None:
            return state if addition.number == number else None

        outcomes.append(replace(measure_edit(examined, flow, branch.name, edit), does=DOES[branch.kind]))
    return outcomes


def interventions(examined: Examined, flow: Flow) -> list[Outcome]:
    """Return the outcomes of all interventions."""
    outcomes = [measure_edit(examined, flow, name, edit) for name, edit in edits_of(flow)]
    matrices = matrices_of_layers(examined, flow)
    for scale in SCALES if matrices else ():
        with suppress(*FAILURES), multiplied(matrices, scale):
            outcomes.append(measure_edit(examined, flow, f"weights of the layers times {scale:g}", None))
    return outcomes


def edits_of(flow: Flow) -> Iterator[tuple[str, Edit]]:
    """Yield each intervention as (description, edit)."""
    count = len(flow.branches)
    root = count**-0.5
    if not flow.skips:
        yield "a skip around each layer", lambda branch, state, value: state + value
        scaled = f"a skip around each layer, the layer times 1/sqrt({count})"
        yield scaled, lambda branch, state, value: state + root * value
        return
    yield f"branches times 1/sqrt({count})", scale_branches(root, lambda branch: True)
    yield f"branches times {GATE:g}, as behind a gate", scale_branches(GATE, lambda branch: True)
    if any(not branch.mixes for branch in flow.branches):
        yield f"branches that mix tokens times 1/sqrt({count})", scale_branches(root, lambda branch: branch.mixes)
    yield "a norm after each branch", lambda branch, state, value: state + normalise(flow, value)
    yield "a norm after each addition", lambda branch, state, value: normalise(flow, state + value)


def scale_branches(scale: float, chosen: Callable[[Branch], bool]) -> Edit:
    """Return an edit that scales the branches for which `chosen` is true."""

    def edit(branch: Branch, state: Tensor, value: Tensor) -> Tensor | None:
        return state + scale * value if chosen(branch) else None

    return edit


def normalise(flow: Flow, value: Tensor) -> Tensor:
    """Scale rows to mean square 1."""
    return value * (value.pow(2).mean(flow.layout.feature, keepdim=True) + 1e-12).rsqrt()


def matrices_of_layers(examined: Examined, flow: Flow) -> list[Tensor]:
    """Return the weight matrices of the layers, without repeating a shared one. Return none if the layers are not modules."""
    known = dict(examined.model.named_modules())
    weights = [weight for name in flow.layers if name in known for weight in known[name].parameters()]
    return [weight for weight in dict.fromkeys(weights) if weight.dim() > 1 and weight.is_floating_point()]


@contextmanager
def multiplied(weights: list[Tensor], factor: float) -> Iterator[None]:
    """Multiply weights in place, and restore them afterwards."""
    with restored(weights), torch.no_grad():
        for weight in weights:
            weight.mul_(factor)
        yield
