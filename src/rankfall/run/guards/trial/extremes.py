"""How a map is tried for neighbours that diverge: samples of one member are made ten thousand times as large
and infinite, and so are one member's parameters; no other entry may change.

A function such as `(logits - logits.amax()).exp()` agrees with itself on entries of one size, since what it has in common for all members
cancels. It gives zeros to all that stand beside a member that diverges.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rankfall.run.guards.trial.candidate import Refused

if TYPE_CHECKING:
    from rankfall.run.guards.trial.maps import Trial, Use

LARGE = 1e4
TOLD = f"{LARGE:,.0f} times as large"


def check_extremes(trial: "Trial", call: "Use", whole: Sequence[Tensor]) -> None:
    """Raise `Refused` if an entry other than the extreme ones is not what it was in `whole`, the outputs (K, B, ...) without them."""
    if any(value.is_floating_point() for value in call.inputs):
        both = f"samples of member 0 are {TOLD} and infinite"
        got = outputs_of(trial, call, [LARGE, torch.inf])
        if (
            got is None
        ):  # an error ends the stack, which is then halved until the infinite one is alone: no other is harmed
            both = f"a sample of member 0 is {TOLD}"
            got = trial.run(call, trial.whole, with_extremes(call.inputs, [LARGE]))
        check_others(trial, call, got, whole, both, samples=2)
    if trial.parameters:  # never infinite: a member that diverges keeps its last finite weights
        with extreme_parameters(trial.parameters):
            got = trial.run(call, trial.whole, [value.clone() for value in call.inputs])
        check_others(trial, call, got, whole, f"the parameters of member 0 are {TOLD}")


def outputs_of(trial: "Trial", call: "Use", factors: Sequence[float]) -> Sequence[Tensor] | None:
    """The outputs of the module; None where it raises."""
    try:
        return trial.run(call, trial.whole, with_extremes(call.inputs, factors))
    except Refused:
        return None


def with_extremes(inputs: Sequence[Tensor], factors: Sequence[float]) -> list[Tensor]:
    """Copies (K, B, ...) whose first samples of member 0 are so many times as large; symbols stay what they are."""
    copies = [value.clone() for value in inputs]
    for value in filter(torch.is_floating_point, copies):
        for sample, factor in enumerate(factors):
            value[0, sample] *= factor
    return copies


@contextmanager
def extreme_parameters(parameters: Mapping[str, Tensor]) -> Iterator[None]:
    before = {name: value.data[0].clone() for name, value in parameters.items()}
    try:
        for value in parameters.values():
            value.data[0] *= LARGE
        yield
    finally:
        for name, value in parameters.items():
            value.data[0] = before[name]


def check_others(
    trial: "Trial", call: "Use", got: Sequence[Tensor], whole: Sequence[Tensor], told: str, samples: int | None = None
) -> None:
    """All other members, and the samples of member 0 from this one on."""
    from rankfall.run.guards.trial.maps import AGREE, difference

    if difference([value[1:] for value in got], [value[1:] for value in whole]) > AGREE:
        raise trial.candidate.refusal(
            f"mixes the members of a stack: where {told}, other members change, given {call.told}",
            "no operation, such as a maximum, may run over the first axis, K",
        )
    if samples and difference([value[0, samples:] for value in got], [value[0, samples:] for value in whole]) > AGREE:
        raise trial.candidate.refusal(
            f"mixes samples: where {told}, its other samples change, given {call.told}",
            "no operation, such as a maximum, may run over the second axis, B",
        )
