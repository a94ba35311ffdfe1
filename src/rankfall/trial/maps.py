"""Try a map of tensors (K, B, ...): shape, number format, finite numbers and gradients, repeated results, and independence of members and
samples.

Calls are in float64. Each member draws its own parameters, so that using another member's parameters changes the result.

In float64, results computed in two ways differ by about 1e-16 of the largest entry, since products of stacks are summed in another order
than single ones; AGREE allows ten thousand times more for longer sums. Mixing members or samples changes results by much more than that.
The neighbour's numbers are large because a shared maximum cancels, as in `(logits - logits.amax()).exp()`, until a member diverges.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rankfall.nets.primitives import Initial, Sizes
from rankfall.random_streams import stream
from rankfall.trial.candidate import MEMBERS, SAMPLES, Candidate, Surroundings
from rankfall.trial.flags import unused_generators

AGREE = 1e-12  # difference of the same result computed in two ways, as a share of its largest entry
LARGE = 1e4  # factor of the neighbour's numbers, which stand for a member that diverges
NOISE = 0.1  # deviation of the noise that makes parameters with a constant start differ between members
Make = Callable[[Sizes], Any]


class Axis(NamedTuple):
    """An axis along which results must be independent."""

    number: int
    length: int
    plural: str
    singular: str
    place: str


MEMBER = Axis(0, MEMBERS, "the members of a stack", "member", "the first axis, K")
SAMPLE = Axis(1, SAMPLES, "samples", "sample", "the second axis, B")


def difference(results: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    """Return the largest distance between entries as a share of the largest expected entry; equal infinities do not differ."""
    worst = 0.0
    for result, reference in zip(results, expected):
        distance = torch.where(result == reference, 0.0, (result - reference).abs()).nan_to_num(nan=torch.inf).max()
        largest = torch.where(reference.isfinite(), reference.abs(), 0.0).max()
        largest = largest.clamp_min(torch.finfo(reference.dtype).tiny)
        worst = max(worst, float(distance / largest))
    return worst


def check_independent(
    candidate: Candidate, axis: Axis, beside: Sequence[Tensor], alone: Sequence[Tensor], inputs: str
) -> None:
    """Raise `Refused` if results depend on neighbours along an axis.

    `alone`: the results (K, B, ...) of the last member or sample; `beside`: those of all, where the numbers of the first are LARGE times as
    large. `inputs` describes the inputs in words."""
    last = axis.length - 1
    if (off := difference([value.narrow(axis.number, last, 1) for value in beside], alone)) > AGREE:
        raise candidate.refusal(
            f"mixes {axis.plural}: {axis.singular} {last} of {axis.length} differs by {off:.1e} from what it is alone, given {inputs}, "
            f"where {axis.singular} 0 has numbers {LARGE:,.0f} times as large",
            f"no operation, such as a mean or a maximum, may run over {axis.place}, or depend on its length",
        )


@dataclass(frozen=True)
class Use:
    """A call of a component by a network: inputs (K, B, ...), and the shape after (K, B) of each output."""

    label: str  # the inputs in words
    inputs: tuple[Tensor, ...]
    outputs: tuple[tuple[int, ...], ...]
    method: str = ""  # "": the component itself is called
    also: Mapping[str, Any] = field(default_factory=dict)  # keyword arguments
    through: tuple[bool, ...] = ()  # floating-point inputs to which a gradient must come back; default: all
    may_mask: bool = False  # whether -inf is a result


def try_maps(candidate: Candidate, make: Make, uses: Sequence[Use], setting: Surroundings) -> list[tuple[Tensor, ...]]:
    """Try every use, in float64 and then in float32, the format of most networks. Return the outputs (K, B, ...) of each."""
    trial = MapTrial(candidate, make, setting)
    outputs = [trial.attempt(use) for use in uses]
    if setting.trained:
        trial.check_reached(uses)
    trial.format = torch.float32
    if isinstance(trial.whole, nn.Module):
        trial.whole.to(torch.float32)
    with torch.no_grad():
        for use in uses:
            inputs = [value.float() if value.is_floating_point() else value for value in use.inputs]
            trial.run(use, trial.whole, inputs)
    return outputs


class MapTrial:
    """A component for all members in float64, with a draw for each parameter and member."""

    def __init__(self, candidate: Candidate, make: Make, setting: Surroundings) -> None:
        self.candidate, self.make, self.setting = candidate, make, setting
        self.format = torch.float64
        self.whole = make(setting.sizes(MEMBERS))
        self.parameters: dict[str, nn.Parameter] = {}
        self.reached: set[str] = set()  # parameters to which a gradient came back
        if isinstance(self.whole, nn.Module):
            self.whole.to(torch.float64).eval()
            self.parameters = dict(self.whole.named_parameters())
        for name, value in self.parameters.items():
            start = getattr(value, "initial", None)
            if not isinstance(start, Initial) or value.shape[:1] != (MEMBERS,):
                raise candidate.refusal(
                    f"has a parameter {name!r} {tuple(value.shape)} without a share for each of {MEMBERS} members",
                    "make it by `parameter`, `constant`, `Linear` or `Lookup` (`from rankfall import ...`)",
                )
            scale = NOISE if start.kind == "constant" else max(1, start.fan_in) ** -0.5
            for member in range(MEMBERS):
                noise = stream(member, "trial", name).normal(0.0, scale, tuple(value.shape[1:]))
                value.data[member] = start.constant + torch.from_numpy(noise)

    def attempt(self, use: Use) -> tuple[Tensor, ...]:
        """Check a use in every way and return its outputs."""
        leaves = [value.clone().requires_grad_(value.is_floating_point()) for value in use.inputs]
        inputs = [leaf.clone() for leaf in leaves]  # not leaves, whose edit in place raises an error of torch
        with unused_generators(self.candidate.refusal):  # first, since its error says more than "gives another result"
            first = self.run(use, self.whole, inputs)
        if any(not torch.equal(before, after) for before, after in zip(use.inputs, inputs)):
            raise self.candidate.refusal(f"edits its input, {use.label}, in place", "work on new tensors")
        for value in first:  # (K, B, ...)
            not_finite = ~(value.isfinite() | value.isneginf() if use.may_mask else value.isfinite())
            if not_finite.any():
                raise self.candidate.refusal(
                    f"returns {value[not_finite][0].item()} in {int(not_finite.sum())} of {not_finite.numel()} entries, given {use.label}",
                    "every result must be finite",
                )
        self.check_repeats(use, first)
        with torch.no_grad():
            for axis in (MEMBER, SAMPLE):
                beside, alone = (self.run_beside(use, axis, alone) for alone in (False, True))
                check_independent(self.candidate, axis, beside, alone, use.label)
        if self.setting.trained:
            self.differentiate(use, leaves, first)
        return tuple(value.detach() for value in first)

    def run(self, use: Use, module: Any, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the outputs after a check of their number, shapes and number format. The call may edit the inputs."""
        candidate = self.candidate
        function = getattr(module, use.method, None) if use.method else module
        if not callable(function):
            given = f"gives {_describe(module)}, which cannot be called"
            fault = f"has no method `{use.method}`" if use.method else given
            raise candidate.refusal(fault, f"it must be {candidate.contract}")
        inputs_text = f"given {use.label} {' and '.join(str(tuple(value.shape)) for value in inputs)}"
        result = candidate.call(function, inputs_text, *inputs, **use.also)
        outputs = result if isinstance(result, tuple) else (result,)
        expected = [(*inputs[0].shape[:2], *shape) for shape in use.outputs]
        returns = f"`{use.method}` returns" if use.method else "returns"
        if [tuple(value.shape) if isinstance(value, Tensor) else None for value in outputs] != expected:
            raise candidate.refusal(
                f"{returns} {' and '.join(map(_describe, outputs))}, {inputs_text}",
                f"it must return {' and '.join(map(str, expected))}",
            )
        if wrong := [value.dtype for value in outputs if value.dtype != self.format]:
            dtype, format_name = (str(dtype).removeprefix("torch.") for dtype in (wrong[0], self.format))
            raise candidate.refusal(
                f"{returns} {dtype} in a network of {format_name}",
                "make tensors with the dtype of its input or of its parameters",
            )
        return outputs

    def check_repeats(self, use: Use, first: Sequence[Tensor]) -> None:
        """Raise `Refused` if a second call differs.

        The second call is in training mode, which networks never use, so that `nn.Dropout` shows. It switches off the gradients of all
        registered parameters, so that a result with a gradient shows a parameter that is not registered."""
        module = self.whole if isinstance(self.whole, nn.Module) else nn.Module()
        module.train().requires_grad_(False)
        with torch.random.fork_rng(devices=[]):
            again = self.run(use, self.whole, [value.clone() for value in use.inputs])
        module.eval().requires_grad_(True)
        if any(value.requires_grad for value in again):
            raise self.candidate.refusal(
                "uses a parameter that is not among its `parameters()`",
                "assign it to an attribute of the module, or keep several in a torch.nn.ParameterList",
            )
        if (off := difference(again, [value.detach() for value in first])) > AGREE:
            raise self.candidate.refusal(
                f"gives another result ({off:.1e}) when called again with the same {use.label}, in training mode",
                "let it keep nothing between calls, no running mean either, and draw no random numbers of its own: dropout of a network is "
                "the training's `dropout`, which reaches attentions and blocks as `drop`",
            )

    def run_beside(self, use: Use, axis: Axis, alone: bool) -> tuple[Tensor, ...]:
        """Return the outputs of the last member or sample alone, or the outputs of all if the first has large numbers."""
        last = axis.length - 1
        inputs = [(value.narrow(axis.number, last, 1) if alone else value).clone() for value in use.inputs]
        if not alone:
            for value in filter(torch.is_floating_point, inputs):
                value.select(axis.number, 0).mul_(LARGE)
        module = self.whole
        if axis is MEMBER:
            module = self.copy([last]) if alone else self.copy(range(MEMBERS), LARGE)
        return self.run(use, module, inputs)

    def copy(self, members: Sequence[int], factor: float = 1.0) -> Any:
        """Return the component for these members with the same parameters; those of the first are `factor` times as large."""
        module = self.make(self.setting.sizes(len(members)))
        if not isinstance(module, nn.Module):
            return module
        module.to(torch.float64).eval()
        for name, value in module.named_parameters():
            values = self.parameters[name].data[list(members)]
            if value.shape != values.shape:
                shapes = f"{tuple(self.parameters[name].shape)} for {MEMBERS} members, but {tuple(value.shape)} for one"
                remedy = "only its first axis may follow from the number of members"
                raise self.candidate.refusal(f"has a parameter {name!r} {shapes}", remedy)
            value.data.copy_(values)
            value.data[0] *= factor
        return module

    def differentiate(self, use: Use, leaves: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        """Raise `Refused` if an input gets no gradient, or if a gradient is not finite."""
        numbers = [leaf for leaf in leaves if leaf.requires_grad]
        leaves_and_parameters = [*self.parameters.values(), *numbers]
        total = sum((_weighted_sum(value) for value in outputs), torch.zeros((), dtype=torch.float64))
        if not leaves_and_parameters:
            return
        gradients: Sequence[Tensor | None] = [None] * len(leaves_and_parameters)
        if total.requires_grad:
            gradients = self.candidate.call(
                torch.autograd.grad, "differentiated", total, leaves_and_parameters, allow_unused=True
            )
        parameter_grads, input_grads = gradients[: len(self.parameters)], gradients[len(self.parameters) :]
        self.reached |= {name for name, gradient in zip(self.parameters, parameter_grads) if gradient is not None}
        needed = use.through or (True,) * len(numbers)
        if any(gradient is None and need for gradient, need in zip(input_grads, needed)):
            raise self.candidate.refusal(
                f"lets no gradient through to {use.label}, so that nothing before it could be trained",
                "compute with torch, without `detach`, `item` or NumPy",
            )
        # A masked score is -inf, and its gradient reaches no parameter.
        reaching = [g[leaf.isfinite()] for g, leaf in zip(input_grads, numbers) if g is not None]
        reaching += [gradient for gradient in parameter_grads if gradient is not None]
        if not all(bool(gradient.isfinite().all()) for gradient in reaching):
            raise self.candidate.refusal(
                f"has a gradient that is not finite, given {use.label}",
                "divide by nothing near zero, take no root or logarithm of it, and multiply no -inf by a parameter",
            )

    def check_reached(self, uses: Sequence[Use]) -> None:
        """Raise `Refused` if no gradient of any use reaches a parameter. The fix depends on whether its value changes a result."""
        name = next((name for name in self.parameters if name not in self.reached), None)
        if name is None:
            return
        with torch.no_grad():
            before = [self.run(use, self.whole, [value.clone() for value in use.inputs]) for use in uses]
            self.parameters[name].mul_(2)
            after = [self.run(use, self.whole, [value.clone() for value in use.inputs]) for use in uses]
        if all(torch.equal(first, second) for pair in zip(before, after) for first, second in zip(*pair)):
            raise self.candidate.refusal(f"never uses its parameter {name!r}", "use it in the result, or remove it")
        raise self.candidate.refusal(
            f"lets no gradient through to its parameter {name!r}, so that it could not be trained",
            "compute with torch, without `no_grad`, `detach`, `item` or NumPy",
        )


def _weighted_sum(value: Tensor) -> Tensor:
    """Return a weighted sum, which has a gradient even where the plain sum is constant, as for a row of attention weights."""
    weights = torch.arange(1, value.numel() + 1, dtype=value.dtype).view(value.shape).sin()
    return torch.where(value.isfinite(), value * weights, 0.0).sum()


def _describe(value: Any) -> str:
    """Return the shape of a tensor, or the type of any other value."""
    if value is None:
        return "None, as without a `return`"
    return str(tuple(value.shape)) if isinstance(value, Tensor) else f"a {type(value).__name__}"
