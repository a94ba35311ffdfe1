"""States carried through layers that would take them out of the range of their number format.

The state of a network without norms may fall to 1e-162 and then to zero while its tokens differ as much as ever: the zero is underflow,
not collapse. Where a layer is homogeneous, f(2^k X) = 2^(p k) f(X), its input can be rescaled by a power of two, and the exponents are
kept beside it exactly. Homogeneity is tested in each layer: a state beyond 2^(+-SAFE) enters at two other sizes, and the two outputs
must be equal bit for bit up to a power of two. At the state's true size the layer must give the output that follows from this, or only
zeros, which is underflow. (Otherwise a constant too small to be seen beside a larger state would be left out.) If the test fails, the
state and all that follow are lost, since products inside the layer may have left the range without a trace in its output. States within
the range are left unchanged.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rankfall.rank.powers import exponent_of, measurable, shift

SAFE = 128  # largest exponent of a state that is left as it is; products of six numbers of this size are in the range of float64
NEAR, FAR = 64, 88  # the two sizes; at 2^-64 a smooth function equals its leading term in float64
FARTHEST = 2**40  # exponents beyond this are not kept, so that sums of exponents stay far within int64
ROUNDING = 1e-12  # relative to the largest entry: some thousand rounding units of float64


@dataclass(frozen=True)
class Carried:
    """The state unit * 2^exponent; unknown where it is lost."""

    unit: Tensor  # (..., T, D): the state itself where the exponent is 0
    exponent: Tensor  # (...) integers
    lost: Tensor  # (...)

    def mask_lost(self, values: Tensor) -> Tensor:
        """Return values (...) of the state, NaN where it is lost."""
        return torch.where(self.lost, torch.nan, values)

    def absolute(self, size: Tensor) -> Tensor:
        """Convert a size (...) of the unit to that of the state.

        NaN where the state is lost or the size leaves the normal range of its format.
        """
        true = shift(size, self.exponent)
        normal = (size == 0) | ((true >= torch.finfo(size.dtype).tiny) & true.isfinite())
        return self.mask_lost(torch.where(normal, true, torch.nan))


@dataclass(frozen=True)
class Step:
    """Powers of two that a layer's input was multiplied by, and those that take its outputs to their true size."""

    inside: Tensor
    outputs: list[Tensor]


Layer = Callable[[Tensor], Sequence[Tensor]]  # maps a state to one or more states


def begin(x: Tensor) -> Carried:
    """Start with a state at its true size."""
    return Carried(x, torch.zeros(x.shape[:-2], dtype=torch.long, device=x.device), ~measurable(x))


def carry_through(
    layer: Layer, state: Carried, tokens: Callable[[Tensor], Tensor] = lambda x: x
) -> tuple[list[Carried], Step]:
    """Apply a layer to a state. `tokens` picks the rows that count, without sentinels."""
    unit_exponent = exponent_of(tokens(state.unit))  # (...)
    size = state.exponent + unit_exponent
    far = (size.abs() > SAFE) & ~state.lost
    if not bool(far.any() or state.exponent.any()):
        zero = torch.zeros_like(size)
        after = [Carried(x, zero, state.lost | ~measurable(tokens(x))) for x in layer(state.unit)]
        return after, Step(zero, [zero] * len(after))
    shifts = [torch.where(far, size.sign() * place - unit_exponent, state.exponent) for place in (NEAR, FAR)]
    trials = [layer(shift(state.unit, inside[..., None, None])) for inside in shifts]
    true = shift(state.unit, state.exponent[..., None, None])
    plains = layer(true)
    # Where input and output fit the format and the test passes, the ordinary output is kept to its last bit.
    held, checked = far & measurable(tokens(true)), []
    for output, other, plain in zip(*trials, plains):
        degree = (exponent_of(output) - exponent_of(other)) * size.sign()
        degree = -degree.div(FAR - NEAR, rounding_mode="floor")
        between = (shifts[0] - shifts[1]) * degree
        same = (output == shift(other, between[..., None, None])).flatten(-2).all(-1)
        exponent = torch.where(far, degree * (state.exponent - shifts[0]), 0)
        bad = far & ~(same & is_same_output(output, exponent, plain))
        held = held & measurable(tokens(plain)) & ~bad
        checked.append((output, exponent, plain, bad))
    after = []
    for output, exponent, plain, bad in checked:
        output, exponent = torch.where(held[..., None, None], plain, output), torch.where(held, 0, exponent)
        lost = state.lost | ~measurable(tokens(output)) | bad | (exponent.abs() > FARTHEST)
        after.append(Carried(output, torch.where(lost, 0, exponent), lost))
    return after, Step(torch.where(held, state.exponent, shifts[0]), [carried.exponent for carried in after])


def is_same_output(output: Tensor, exponent: Tensor, plain: Tensor) -> Tensor:
    """Check whether a plain output (..., T, D) is output * 2^exponent as far as its format can hold it, or zero, (...)."""
    size = plain.abs().amax((-2, -1))
    gap = (plain - shift(output, exponent[..., None, None])).abs().amax((-2, -1))
    spacing = torch.finfo(plain.dtype).tiny * torch.finfo(plain.dtype).eps  # of subnormal numbers
    return (size == 0) | (gap <= ROUNDING * size + 16 * spacing)


def repeat_step(layer: Layer, state: Carried, step: Step, first: Sequence[Carried]) -> list[Carried]:
    """Repeat a step in a second pass, whose states differ from those of the first by rounding."""
    x = shift(state.unit, step.inside[..., None, None])
    return [
        Carried(y, power, reference.lost) for y, power, reference in zip(layer(x), step.outputs, first, strict=True)
    ]


def carry_twice(
    layers: Sequence[Callable[[Tensor], Tensor]], others: Sequence[Callable[[Tensor], Tensor]], x: Tensor, other: Tensor
) -> Iterator[tuple[Carried, Carried, Step]]:
    """Yield the states at layers 0 .. L of two passes, and the step that led to them. The second pass differs from the first by rounding,
    in its layers or in its first state, and follows the same powers of two."""
    state, moved = begin(x), begin(other)
    yield state, moved, Step(state.exponent, [state.exponent])
    for layer, other_layer in zip(layers, others, strict=True):
        after, step = carry_through(lambda x, layer=layer: [layer(x)], state)  # type: ignore[misc]
        (moved,) = repeat_step(lambda x, layer=other_layer: [layer(x)], moved, step, after)  # type: ignore[misc]
        (state,) = after
        yield state, moved, step


def carry(
    layers: Sequence[Callable[[Tensor], Tensor]], x: Tensor, tokens: Callable[[Tensor], Tensor] = lambda x: x
) -> Iterator[Carried]:
    """Yield the states at layers 0 .. L, without sentinels if `tokens` strips them."""
    state = begin(x)
    yield Carried(tokens(x), state.exponent, ~measurable(tokens(x)))
    for layer in layers:
        ((state,), _) = carry_through(lambda x, layer=layer: [layer(x)], state, tokens)  # type: ignore[misc]
        yield Carried(tokens(state.unit), state.exponent, state.lost)
