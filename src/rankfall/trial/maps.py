"""Try a map of tensors (K, B, ...): shape, number format, finite numbers and gradients, the same result twice, and independence of members
and samples.

It is called in float64, with parameters drawn separately for each member, so that using another member's parameters changes the result.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.nets.primitives import Initial, Sizes
from rankfall.random_streams import stream
from rankfall.trial.candidate import Candidate
from rankfall.trial.flags import unused_generators
from rankfall.trial.independence import AGREE, LARGE, MEMBER, SAMPLE, Axis, check_independent, difference
from rankfall.trial.setting import MEMBERS, Surroundings

NOISE = 0.1  # by which parameters that start as a constant are made to differ between members

Make = Callable[[Sizes], Any]


@dataclass(frozen=True)
class Use:
    """One way in which a network uses a component: inputs (K, B, ...), and the shape after (K, B) of each output."""

    told: str  # the inputs in words
    inputs: tuple[Tensor, ...]
    outputs: tuple[tuple[int, ...], ...]
    method: str = ""  # "": the component itself is called
    also: Mapping[str, Any] = field(default_factory=dict)
    through: tuple[bool, ...] = ()  # inputs to which a gradient must come back; default: all that are numbers
    may_mask: bool = False  # whether -inf is a result


def try_maps(candidate: Candidate, make: Make, uses: Sequence[Use], setting: Surroundings) -> list[tuple[Tensor, ...]]:
    """Try every use, in float64 and then in float32, the format of most networks. Return the outputs (K, B, ...) of each."""
    trial = MapTrial(candidate, make, setting)
    found = [trial.attempt(use) for use in uses]
    trial.format = torch.float32
    if isinstance(trial.whole, nn.Module):
        trial.whole.to(torch.float32)
    with torch.no_grad():
        for use in uses:
            inputs = [value.float() if value.is_floating_point() else value for value in use.inputs]
            trial.run(use, trial.whole, inputs)
    return found


class MapTrial:
    """A component for all members in float64, with a draw for each parameter and member."""

    def __init__(self, candidate: Candidate, make: Make, setting: Surroundings) -> None:
        self.candidate, self.make, self.setting = candidate, make, setting
        self.format = torch.float64
        self.whole = make(setting.sizes(MEMBERS))
        self.parameters: dict[str, nn.Parameter] = {}
        if isinstance(self.whole, nn.Module):
            self.whole.to(torch.float64).eval()
            self.parameters = dict(self.whole.named_parameters())
        for name, value in self.parameters.items():
            start = getattr(value, "initial", None)
            if not isinstance(start, Initial) or value.shape[:1] != (MEMBERS,):
                raise candidate.refusal(
                    f"has a parameter {name!r} {tuple(value.shape)} without a share for each of {MEMBERS} members",
                    "make it by `parameter`, `constant`, `Linear` or `Lookup` of rankfall.nets.primitives",
                )
            scale = NOISE if start.kind == "constant" else max(1, start.fan_in) ** -0.5
            for member in range(MEMBERS):
                noise = stream(member, "trial", name).normal(0.0, scale, tuple(value.shape[1:]))
                value.data[member] = start.constant + torch.from_numpy(noise)

    def attempt(self, use: Use) -> tuple[Tensor, ...]:
        """Make every check of one use. Return its outputs."""
        leaves = [value.clone().requires_grad_(value.is_floating_point()) for value in use.inputs]
        given = [leaf.clone() for leaf in leaves]  # not leaves, whose edit in place raises an error of torch
        with unused_generators(self.candidate.refusal):  # whose error says more than that a second call differs
            first = self.run(use, self.whole, given)
        if any(not torch.equal(before, after) for before, after in zip(use.inputs, given)):
            raise self.candidate.refusal(f"edits its input, {use.told}, in place", "work on new tensors")
        for value in first:
            bad = ~(value.isfinite() | value.isneginf() if use.may_mask else value.isfinite())
            if bad.any():
                raise self.candidate.refusal(
                    f"returns {value[bad][0].item()} in {int(bad.sum())} of {bad.numel()} entries, given {use.told}",
                    "every result must be finite",
                )
        self.check_repeats(use, first)
        with torch.no_grad():
            for axis in (MEMBER, SAMPLE):
                check_independent(self.candidate, axis, partial(self.run_beside, use), use.told)
        if self.setting.trained:
            self.differentiate(use, leaves, first)
        return tuple(value.detach() for value in first)

    def run(self, use: Use, made: Any, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the outputs after a check of their number, shapes and number format. The inputs may be edited."""
        candidate = self.candidate
        function = getattr(made, use.method, None) if use.method else made
        if not callable(function):
            what = f"has no method `{use.method}`" if use.method else f"gives {_describe(made)}, which cannot be called"
            raise candidate.refusal(what, f"it must be {candidate.contract}")
        told = f"given {use.told} {' and '.join(str(tuple(value.shape)) for value in inputs)}"
        result = candidate.call(function, told, *inputs, **use.also)
        outputs = result if isinstance(result, tuple) else (result,)
        wanted = [(*inputs[0].shape[:2], *rest) for rest in use.outputs]
        returns = f"`{use.method}` returns" if use.method else "returns"
        if [tuple(value.shape) if isinstance(value, Tensor) else None for value in outputs] != wanted:
            raise candidate.refusal(
                f"{returns} {' and '.join(map(_describe, outputs))}, {told}",
                f"it must return {' and '.join(map(str, wanted))}",
            )
        if wrong := [value.dtype for value in outputs if value.dtype != self.format]:
            found, expected = (str(dtype).removeprefix("torch.") for dtype in (wrong[0], self.format))
            raise candidate.refusal(
                f"{returns} {found} in a network of {expected}",
                "make tensors with the dtype of its input or of its parameters",
            )
        return outputs

    def check_repeats(self, use: Use, first: Sequence[Tensor]) -> None:
        """Raise if a second call differs. It is made in training mode, in which a network never is, so that `nn.Dropout` shows; and no
        parameter that torch knows of is trainable in it, so a trainable one is hidden."""
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
                f"gives another result ({off:.1e}) when called again with the same {use.told}, in training mode",
                "let it keep nothing between calls, no running mean either, and draw no random numbers of its own: dropout of a network is "
                "the training's `dropout`, which reaches attentions and blocks as `drop`",
            )

    def run_beside(self, use: Use, axis: Axis, alone: bool) -> tuple[Tensor, ...]:
        """Return the outputs of the last member or sample alone, or those of all beside a first one with large numbers."""
        last = axis.length - 1
        inputs = [(value.narrow(axis.number, last, 1) if alone else value).clone() for value in use.inputs]
        if not alone:
            for value in filter(torch.is_floating_point, inputs):
                value.select(axis.number, 0).mul_(LARGE)
        made = self.whole
        if axis is MEMBER:
            made = self.copy([last]) if alone else self.copy(range(MEMBERS), LARGE)
        return self.run(use, made, inputs)

    def copy(self, members: Sequence[int], factor: float = 1.0) -> Any:
        """Return the component for these members with the same parameters, those of the first `factor` times as large."""
        made = self.make(self.setting.sizes(len(members)))
        if not isinstance(made, nn.Module):
            return made
        made.to(torch.float64).eval()
        for name, value in made.named_parameters():
            own = self.parameters[name].data[list(members)]
            if value.shape != own.shape:
                shapes = f"{tuple(self.parameters[name].shape)} for {MEMBERS} members, but {tuple(value.shape)} for one"
                remedy = "only its first axis may follow from the number of members"
                raise self.candidate.refusal(f"has a parameter {name!r} {shapes}", remedy)
            value.data.copy_(own)
            value.data[0] *= factor
        return made

    def differentiate(self, use: Use, leaves: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        """Raise if no gradient comes through to the inputs, or if one is not finite."""
        numbers = [leaf for leaf in leaves if leaf.requires_grad]
        wanted = [*self.parameters.values(), *numbers]
        total = sum((_weighted_sum(value) for value in outputs), torch.zeros((), dtype=torch.float64))
        if not wanted:
            return
        found: Sequence[Tensor | None] = [None] * len(wanted)
        if total.requires_grad:
            found = self.candidate.call(torch.autograd.grad, "differentiated", total, wanted, allow_unused=True)
        own, through = found[: len(self.parameters)], found[len(self.parameters) :]
        needed = use.through or (True,) * len(numbers)
        if any(gradient is None and need for gradient, need in zip(through, needed)):
            raise self.candidate.refusal(
                f"lets no gradient through to {use.told}, so that nothing before it could be trained",
                "compute with torch, without `detach`, `item` or NumPy",
            )
        # The gradient of a masked score goes no further.
        reaching = [g[leaf.isfinite()] for g, leaf in zip(through, numbers) if g is not None]
        if any(not gradient.isfinite().all() for gradient in (*reaching, *(g for g in own if g is not None))):
            raise self.candidate.refusal(
                f"has a gradient that is not finite, given {use.told}",
                "divide by nothing near zero, take no root or logarithm of it, and multiply no -inf by a parameter",
            )


def _weighted_sum(value: Tensor) -> Tensor:
    """Return a sum that is not constant where a kind keeps another one constant, such as the sum of a row of weights."""
    weights = torch.arange(1, value.numel() + 1, dtype=value.dtype).view(value.shape).sin()
    return torch.where(value.isfinite(), value * weights, 0.0).sum()


def _describe(value: Any) -> str:
    if value is None:
        return "None, as without a `return`"
    return str(tuple(value.shape)) if isinstance(value, Tensor) else f"a {type(value).__name__}"
