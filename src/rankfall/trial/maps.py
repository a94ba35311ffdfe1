"""How a map of tensors (K, B, ...) is tried: called twice, in training mode, for one member and one sample alone, beside numbers that
diverge, and differentiated.

In float64, with parameters drawn separately for each member, so that using another member's parameters changes the result. Products of
stacks are summed in another order than single ones, which changes about 1e-16 of the largest entry; AGREE allows ten thousand times more
for longer sums. Mixing members or samples changes results by much more than that.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.nets.primitives import Initial, Sizes
from rankfall.streams import stream
from rankfall.trial.candidate import Candidate, Refused
from rankfall.trial.extremes import AGREE, LARGE, TOLD, difference, large_parameters, with_extremes
from rankfall.trial.flags import unused_generators
from rankfall.trial.setting import MEMBERS, SAMPLES, Surroundings

NOISE = 0.1  # by which what starts as a constant is made to differ between members

Make = Callable[[Sizes], Any]


@dataclass(frozen=True)
class Use:
    """One way in which a network uses a component: inputs (K, B, ...), and the shape after (K, B) of what comes back for each."""

    told: str  # the inputs in words
    inputs: tuple[Tensor, ...]
    outputs: tuple[tuple[int, ...], ...]
    method: str = ""  # "": the component itself is called
    also: Mapping[str, Any] = field(default_factory=dict)
    through: tuple[bool, ...] = ()  # which inputs a gradient must come back to; default: all that are numbers
    may_mask: bool = False  # whether -inf is a result


def try_maps(candidate: Candidate, make: Make, calls: Sequence[Use], setting: Surroundings) -> list[tuple[Tensor, ...]]:
    """Every call tried; the outputs (K, B, ...) of each, for what else its kind must be."""
    trial = Trial(candidate, make, setting)
    found = [trial.call(call) for call in calls]
    trial.finish(calls)
    return found


class Trial:
    def __init__(self, candidate: Candidate, make: Make, setting: Surroundings) -> None:
        self.candidate, self.make, self.setting = candidate, make, setting
        self.whole = self.draw()
        self.single: dict[int, Any] = {}
        self.parameters = dict(self.whole.named_parameters()) if isinstance(self.whole, nn.Module) else {}
        self.reached: set[str] = set()
        self.format = torch.float64

    def draw(self) -> Any:
        """The component for all members, each parameter and member with a draw of its own."""
        made = self.make(self.setting.sizes(MEMBERS))
        if not isinstance(made, nn.Module):
            return made
        for name, value in made.named_parameters():
            start = getattr(value, "initial", None)
            if not isinstance(start, Initial) or value.shape[:1] != (MEMBERS,):
                raise self.candidate.refusal(
                    f"has a parameter {name!r} {tuple(value.shape)} without a share for each of {MEMBERS} members",
                    "make it by `parameter`, `constant`, `Linear` or `Lookup` of rankfall.nets.primitives",
                )
        made.to(torch.float64)
        for name, value in made.named_parameters():
            start = value.initial  # type: ignore[attr-defined]
            scale = NOISE if start.kind == "constant" else max(1, start.fan_in) ** -0.5
            for member in range(MEMBERS):
                noise = torch.from_numpy(stream(member, "trial", name).normal(0.0, scale, tuple(value.shape[1:])))
                value.data[member] = start.constant + noise
        return made.eval()

    def make_alone(self, member: int) -> Any:
        """The component for this member alone, with the same parameters."""
        if member not in self.single:
            made = self.make(self.setting.sizes(1))
            if isinstance(made, nn.Module):
                made.to(torch.float64).eval()
                own = dict(made.named_parameters())
                for name, value in self.parameters.items():
                    if name not in own or own[name].shape != value[:1].shape:
                        raise self.candidate.refusal(
                            f"has a parameter {name!r} {tuple(value.shape)} for {MEMBERS} members, but "
                            f"{tuple(own[name].shape) if name in own else 'none'} for one",
                            "only its first axis may follow from the number of members",
                        )
                    own[name].data.copy_(value.data[member : member + 1])
            self.single[member] = made
        return self.single[member]

    def call(self, call: Use) -> tuple[Tensor, ...]:
        leaves = [value.clone().requires_grad_(value.is_floating_point()) for value in call.inputs]
        given = [leaf.clone() for leaf in leaves]  # no leaves, so that an edit in place is seen and not just an error
        with unused_generators(self.candidate.refusal):
            first = self.run(call, self.whole, given)
        for before, after in zip(call.inputs, given):
            if not torch.equal(before, after):
                raise self.candidate.refusal(f"edits its input, {call.told}, in place", "work on new tensors")
        self.check_finite(call, first)
        settled = [value.detach().clone() for value in first]
        self.check_repeats(call, settled)
        with torch.no_grad():
            self.check_training_mode(call, settled)
            for one in range(MEMBERS):
                self.check_alone(call, settled, one)
            self.check_extremes(call, settled)
        if self.setting.trained:
            self.differentiate(call, leaves, first)
        return tuple(settled)

    def run(self, call: Use, made: Any, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The outputs, of the right number, shape and number format."""
        candidate = self.candidate
        if call.method and not callable(getattr(made, call.method, None)):
            raise candidate.refusal(f"has no method `{call.method}`", f"it must be {candidate.contract}")
        if not callable(made) and not call.method:
            raise candidate.refusal(
                f"gives {_describe(made)}, which cannot be called", f"it must be {candidate.contract}"
            )
        told = f"given {call.told} {' and '.join(str(tuple(value.shape)) for value in inputs)}"
        result = candidate.call(getattr(made, call.method) if call.method else made, told, *inputs, **call.also)
        outputs = result if isinstance(result, tuple) else (result,)
        wanted = [(*inputs[0].shape[:2], *rest) for rest in call.outputs]
        got = [tuple(value.shape) if isinstance(value, Tensor) else None for value in outputs]
        where = f"`{call.method}` " if call.method else ""
        if got != wanted:
            described = " and ".join(map(_describe, outputs))
            raise candidate.refusal(
                f"{where}returns {described}, {told}", f"it must return {' and '.join(map(str, wanted))}"
            )
        for value in outputs:
            if value.dtype != self.format:
                raise candidate.refusal(
                    f"{where}returns {_format(value.dtype)} in a network of {_format(self.format)}",
                    "make tensors with the dtype of its input or of its parameters",
                )
        return outputs

    def check_finite(self, call: Use, outputs: Sequence[Tensor]) -> None:
        for value in outputs:
            bad = ~value.isfinite() & ~(
                value.isneginf() if call.may_mask else torch.zeros_like(value, dtype=torch.bool)
            )
            if bad.any():
                raise self.candidate.refusal(
                    f"returns {value[bad][0].item()} in {int(bad.sum())} of {bad.numel()} entries, given {call.told}",
                    "every result must be finite",
                )

    def check_repeats(self, call: Use, before: Sequence[Tensor]) -> None:
        """The same again; this time nothing that torch could know of is to be trained, so what still is lies hidden."""
        for value in self.parameters.values():
            value.requires_grad_(False)
        again = self.run(call, self.whole, [value.clone() for value in call.inputs])
        if any(value.requires_grad for value in again):
            raise self.candidate.refusal(
                "uses a parameter that is not among its `parameters()`",
                "assign it to an attribute of the module, or keep several in a torch.nn.ParameterList",
            )
        for value in self.parameters.values():
            value.requires_grad_(True)
        if (off := difference(again, before)) > AGREE:
            raise self.candidate.refusal(
                f"gives another result ({off:.1e}) when called again with the same {call.told}",
                "let it keep nothing between calls, and draw no random numbers of its own",
            )

    def check_training_mode(self, call: Use, before: Sequence[Tensor]) -> None:
        """Networks are always in evaluation mode, so `nn.Dropout` would drop nothing, and a running mean stay where it began."""
        if not isinstance(self.whole, nn.Module):
            return
        self.whole.train()
        with torch.random.fork_rng(devices=[]):
            got = self.run(call, self.whole, [value.clone() for value in call.inputs])
        self.whole.eval()
        if difference(got, before) > AGREE:
            raise self.candidate.refusal(
                f"gives something else in training mode, given {call.told}: networks are always in evaluation mode",
                "drop by the training's `dropout`, which reaches attentions and blocks as `drop`, and keep no running mean",
            )

    def check_alone(self, call: Use, whole: Sequence[Tensor], one: int) -> None:
        """Member and sample of one number, together, against both alone; only a difference asks whose it is."""
        here = slice(one, one + 1)
        inputs, wanted = call.inputs, [value[here, here] for value in whole]
        got = self.run(call, self.make_alone(one), [value[here, here].clone() for value in inputs])
        if (off := difference(got, wanted)) <= AGREE:
            return
        again = self.run(call, self.draw(), [value.clone() for value in inputs])
        if difference(again, whole) > AGREE:
            raise self.candidate.refusal(
                "is not the same when it is made again", "let its __init__ depend on sizes and options alone"
            )
        sample = self.run(call, self.whole, [value[:, here].clone() for value in inputs])
        if difference(sample, [value[:, here] for value in whole]) > AGREE:
            raise self.candidate.refusal(
                f"mixes samples: sample {one} of {SAMPLES} differs by {off:.1e} from what it is alone, given {call.told}",
                "no operation may run over the second axis, B, or depend on its length",
            )
        raise self.candidate.refusal(
            f"mixes the members of a stack: member {one} of {MEMBERS} differs by {off:.1e} from what it is alone",
            "no operation may run over the first axis, K, or depend on its length",
        )

    def check_extremes(self, call: Use, whole: Sequence[Tensor]) -> None:
        """Samples and parameters of member 0 are large, and a sample infinite: `logits.amax()` cancels until then."""
        if any(value.is_floating_point() for value in call.inputs):
            told = f"samples of member 0 are {TOLD} and infinite"
            try:
                got = self.run(call, self.whole, with_extremes(call.inputs, [LARGE, torch.inf]))
            except Refused:  # the stack is then halved until the infinite one is alone: no other is harmed
                told = f"a sample of member 0 is {TOLD}"
                got = self.run(call, self.whole, with_extremes(call.inputs, [LARGE]))
            self.check_others(call, got, whole, told, samples=2)
        if self.parameters:  # never infinite: a member that diverges keeps its last finite weights
            with large_parameters(self.parameters):
                got = self.run(call, self.whole, [value.clone() for value in call.inputs])
            self.check_others(call, got, whole, f"the parameters of member 0 are {TOLD}")

    def check_others(
        self, call: Use, got: Sequence[Tensor], whole: Sequence[Tensor], told: str, samples: int | None = None
    ) -> None:
        """All other members, and the samples of member 0 from this one on, are what they were in `whole` (K, B, ...)."""
        if difference([value[1:] for value in got], [value[1:] for value in whole]) > AGREE:
            raise self.candidate.refusal(
                f"mixes the members of a stack: where {told}, other members change, given {call.told}",
                "no operation, such as a maximum, may run over the first axis, K",
            )
        rest = [[value[0, samples:] for value in values] for values in (got, whole)]
        if samples and difference(*rest) > AGREE:
            raise self.candidate.refusal(
                f"mixes samples: where {told}, its other samples change, given {call.told}",
                "no operation, such as a maximum, may run over the second axis, B",
            )

    def differentiate(self, call: Use, leaves: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        """Which parameters a gradient reaches, and that it comes through to what lies before."""
        numbers = [leaf for leaf in leaves if leaf.requires_grad]
        wanted = [*self.parameters.values(), *numbers]
        total = sum(_weigh(value) for value in outputs)
        if not wanted or not isinstance(total, Tensor):
            return
        found: Sequence[Tensor | None] = [None] * len(wanted)
        if total.requires_grad:
            found = self.candidate.call(
                torch.autograd.grad, "differentiated", total, wanted, allow_unused=True, retain_graph=False
            )
        own, through = found[: len(self.parameters)], found[len(self.parameters) :]
        self.reached |= {name for name, gradient in zip(self.parameters, own) if gradient is not None}
        needed = call.through or (True,) * len(numbers)
        if any(gradient is None and need for gradient, need in zip(through, needed)):
            raise self.candidate.refusal(
                f"lets no gradient through to {call.told}, so that nothing before it could be trained",
                "compute with torch, without `detach`, `item` or NumPy",
            )
        # What comes back to a masked score goes no further.
        kept = [(g, leaf.isfinite()) for g, leaf in zip(through, numbers)] + [(g, None) for g in own]
        for gradient, there in kept:
            if gradient is not None and not (gradient if there is None else gradient[there]).isfinite().all():
                raise self.candidate.refusal(
                    f"has a gradient that is not finite, given {call.told}",
                    "divide by nothing near zero, take no root or logarithm of it, and multiply no -inf by a parameter",
                )

    def finish(self, calls: Sequence[Use]) -> None:
        """Parameters that no gradient reached in any call; and the number format that most networks have."""
        unused = sorted(self.parameters.keys() - self.reached)
        if self.setting.trained and unused:
            raise self.candidate.refusal(
                f"has a parameter that no gradient reaches: {unused[0]}", "use it, without `detach`, or leave it out"
            )
        self.format = torch.float32
        if isinstance(self.whole, nn.Module):
            self.whole.to(torch.float32)
        with torch.no_grad():
            for call in calls:
                self.run(
                    call, self.whole, [value.float() if value.is_floating_point() else value for value in call.inputs]
                )


def _weigh(value: Tensor) -> Tensor:
    """A sum that is no constant of what the kinds keep constant, such as the sum of a row of weights."""
    weights = torch.arange(1, value.numel() + 1, dtype=value.dtype).view(value.shape).sin()
    return torch.where(value.isfinite(), value * weights, 0.0).sum()


def _describe(value: Any) -> str:
    return str(tuple(value.shape)) if isinstance(value, Tensor) else f"a {type(value).__name__}"


def _format(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
