"""The three ways to compute a step, fastest first. They return the same numbers up to rounding.

- program: the traced step of one member, run for all members (`engine.py`);
- stack: `torch.func.vmap` over all members;
- loop: one member after another.
"""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from thousandfold.engine import Engine, Results, Work
from thousandfold.errors import EngineError
from thousandfold.graph import Untraceable
from thousandfold.losses import BUFFER, LOSS, Batch, Loss, LossModule, call_loss, flatten
from thousandfold.member_functions import STREAM, DrawAtSite, MemberFunctions, Site, draw_site, keys_of, traced_mask
from thousandfold.program.fusion import Divide
from thousandfold.stack import Stack, attributes_of, other_tensors
from thousandfold.step import Layout, Name, StepProgram, step_program

Forms = tuple[tuple[tuple[int, ...], torch.dtype], ...]  # shape and format of each tensor of a member's batch


class Server(Protocol):
    name: str

    def steps_at_once(self, members: int) -> int: ...

    def steps(self, stack: Stack, batches: Sequence[Batch]) -> list[Results]:
        """Take a step for each batch, whose tensors are (K, ...)."""
        ...

    def passes(self, stack: Stack, batch: Batch) -> Results:
        """Return the results of a step, and write the gradients to `stack.grads`. Nothing is trained."""
        ...


class ProgramServer:
    name = "program"

    def __init__(self, stack: Stack, loss: Loss, kind: type[Engine] = Engine) -> None:
        self.loss, self.template = loss, deepcopy(stack.modules[0])  # on the processor, where it is traced
        self.apart = [name for name, values in stack.buffers.items() if not (values == values[:1]).all()]
        for name in self.apart:
            if stack.buffers[name].dtype != stack.weights.dtype:
                raise Untraceable(f"the buffer {name} differs between members, and has another format than the weights")
        self.packed = [stack.buffers[name].flatten(1) for name in self.apart]  # each (K, N)
        self.engine = kind(stack, torch.from_numpy(keys_of(stack.seeds)))
        self.reference = AutogradServer(stack, loss, together=False)
        self.programs: dict[Forms, StepProgram] = {}
        self.draws: dict[Forms, dict[int, Site]] = {}  # sites of numbers
        self.idle: dict[Forms, Tensor] = {}  # parameters that the loss does not use
        self.last: Tensor | None = None  # those of the last step
        self.largest = 1

    def steps_at_once(self, members: int) -> int:
        return self.engine.steps_at_once(members)

    def steps(self, stack: Stack, batches: Sequence[Batch]) -> list[Results]:
        """Take a step for each batch. Parameters that the loss does not use stay as they are."""
        idle = [self.idle_for(stack, batch) for batch in batches]
        if any(not torch.equal(unused, idle[0]) for unused in idle):
            return [results for batch in batches for results in self.steps(stack, [batch])]
        changes = self.last is None or not torch.equal(idle[0], self.last)
        if changes:
            self.last, self.last_on_device = idle[0], idle[0].to(stack.device)
        stack.idle.copy_(self.last_on_device)
        if changes:
            self.counts_alike = torch.equal(stack.used, stack.counted())
        if not self.counts_alike:  # a parameter was left at earlier steps: PyTorch takes these steps
            results = [self.passes(stack, batches[0])]
            stack.update(results[0][LOSS])
            return results + (self.steps(stack, batches[1:]) if batches[1:] else [])
        works = [self.work(stack, batch, stack.step_count + i) for i, batch in enumerate(batches)]
        with stack.leaving(idle[0]):
            results = self.engine.steps(stack, works)
        stack.used.copy_(stack.counted())
        return results

    def passes(self, stack: Stack, batch: Batch) -> Results:
        """Return the results of a step, and write the gradients to `stack.grads`."""
        return self.engine.passes(stack, self.work(stack, batch, stack.step_count))

    def idle_for(self, stack: Stack, batch: Batch) -> Tensor:
        """Return which parameters the loss does not use for batches of this form."""
        forms = forms_of(batch)
        if forms not in self.idle:
            with stack.keeping_buffers():
                self.reference.passes(stack, batch, [0])
            self.idle[forms] = stack.idle[0].cpu().clone()
        return self.idle[forms]

    def work(self, stack: Stack, batch: Batch, step: int) -> Work:
        tensors = flatten(batch)
        bound = max((int(x.abs().max()) for x in tensors if x.numel() and is_integer(x)), default=1)
        if bound > self.largest:  # integers are computed exactly up to a bound, which is part of a program
            self.largest = 2 ** bound.bit_length()
            self.programs.clear()
        forms = forms_of(batch)
        if forms not in self.programs:
            sites = enumerate(self.reference.find_sites(stack, batch))
            self.draws[forms] = draws = {site: (shape, kind) for site, (shape, kind) in sites if kind < 0}
            example = [torch.zeros(shape, dtype=dtype) for shape, dtype in forms]
            module = LossModule(self.template, self.loss, batch)
            with keeping_generators():
                self.programs[forms] = module_program(
                    module, example, self.apart, draws, self.largest, self.engine.divide
                )
        packed = self.packed + [
            draw_site(stack.seeds, site, kind, shape, step, stack.weights).flatten(1)
            for site, (shape, kind) in self.draws[forms].items()
        ]
        return Work(self.programs[forms], [*tensors, *([torch.cat(packed, 1)] if packed else [])])


def module_program(
    module: LossModule,
    tensors: Sequence[Tensor],
    apart: Sequence[str],
    draws: Mapping[int, Site],
    largest: int,
    divide: Divide | None,
) -> StepProgram:
    """Return the program of a module's step on a batch of one member. Raise `Untraceable` if it has none. One more input has the buffers
    that differ between members (`apart`) and the numbers of the sites that draw some (`draws`)."""
    held = other_tensors(module.module)
    parameters = {
        name.removeprefix("module."): value.detach() for name, value in module.named_parameters() if value.requires_grad
    }
    names = [*apart, *draws]
    sizes = [*(held[name].numel() for name in apart), *(math.prod(shape) for shape, _ in draws.values())]
    packed = [torch.zeros(sum(sizes), dtype=next(iter(parameters.values())).dtype)] if names else []

    def function(values: Mapping[str, Tensor], *inputs: Tensor) -> tuple[Tensor, dict[Name, Tensor]]:
        parts = dict(zip(names, inputs[-1].split(sizes) if names else ()))
        buffers = {name: parts[name].view(held[name].shape) for name in apart}

        def draw(x: Tensor, site: int, kind: int) -> Tensor:
            return parts[site].view(x.shape) if kind < 0 else traced_mask(x, site, kind)

        with MemberFunctions(draw), unvalidated():
            results = call_loss(module, {**values, **buffers}, inputs[: len(tensors)])
        for kind, name in results:
            if kind == BUFFER:
                raise Untraceable(f"it replaces the buffer {name}")
        return results[LOSS], results

    samples = tensors[0].shape[0] if tensors[0].dim() else 0
    lanes = tuple(0 if x.dim() and x.shape[0] == samples else None for x in tensors)
    first = tensors[0]
    length = first.shape[1] if first.dim() > 2 or (first.dim() > 1 and not first.is_floating_point()) else 0
    layout = Layout((*lanes, *(None for _ in packed)), length, largest)
    return step_program(function, parameters, [*tensors, *packed], layout, divide=divide)


class AutogradServer:
    """Steps by autograd, by `torch.func.vmap` if `together`, else one member after another."""

    def __init__(self, stack: Stack, loss: Loss, together: bool) -> None:
        self.name, self.together = "stack" if together else "loop", together
        self.loss, self.sites = loss, dict[Forms, list[Site]]()

    def steps_at_once(self, members: int) -> int:
        return 1

    def steps(self, stack: Stack, batches: Sequence[Batch]) -> list[Results]:
        results = []
        for batch in batches:
            results.append(self.passes(stack, batch))
            stack.update(results[-1][LOSS])
        return results

    def passes(self, stack: Stack, batch: Batch, only: Sequence[int] | None = None, as_double: bool = False) -> Results:
        """Return the results of a step, and write the gradients to `stack.grads`. `only`: compute these members, and no others.
        `as_double`: compute in float64, and keep the buffers."""
        tensors, values = flatten(batch), dict(zip(stack.names, stack.parameters))
        if self.together and only is None:
            module = LossModule(stack.templates[0], self.loss, batch)
            drawn = [
                draw_site(stack.seeds, site, kind, shape, stack.step_count, stack.weights)
                for site, (shape, kind) in enumerate(self.find_sites(stack, batch))
            ]

            def compute(values: Mapping[str, Tensor], drawn: Sequence[Tensor], *inputs: Tensor) -> Results:
                return evaluate(module, values, lambda x, site, kind: drawn[site], inputs)

            with keeping_generators():
                results = torch.func.vmap(compute)(values | stack.buffers, drawn, *tensors)
            replaced = [(slice(None), take_buffers(results))]
            stack.differentiate(results[LOSS])
        else:
            per_member, replaced = [], []
            stack.clear_gradients()
            with keeping_generators():
                for k in range(len(stack)) if only is None else only:
                    template = stack.templates[k if stack.apart else 0]
                    module = LossModule(template, self.loss, batch)
                    before = attributes_of(template) if only is not None else {}
                    convert = to_double if as_double else lambda x: x
                    # Changes in place of one member's buffers would spoil the gradients of others, were these not copies.
                    member_buffers = {name: convert(value[k].clone()) for name, value in stack.buffers.items()}
                    weights = {name: convert(value.detach()[k]) for name, value in values.items()}
                    for value in weights.values():
                        value.requires_grad_()
                    seed_generators((stack.seeds[k] * STREAM + stack.step_count) % 2**63)
                    module.differentiated = list(weights.values())
                    inputs = [convert(x[k]) for x in tensors]
                    draw = member_draw(stack, k, convert)
                    per_member.append(evaluate(module, weights | member_buffers, draw, inputs))
                    stack.write_gradient(k, module.gradient)
                    replaced.append((slice(k, k + 1), member_buffers | take_buffers(per_member[-1])))
                    if only is not None:
                        check_attributes(before, attributes_of(template))
            results = {name: torch.stack([member[name] for member in per_member]) for name in per_member[0]}
        results = {name: value.detach().clone() for name, value in results.items()}  # some may be views of buffers
        for owners, buffers in replaced:  # after the gradient, which may need the old ones
            if not as_double:
                stack.replace(owners, buffers)
        return results

    def find_sites(self, stack: Stack, batch: Batch) -> list[Site]:
        """Return the sites in a step for batches of this form."""
        forms = forms_of(batch)
        if forms not in self.sites:
            sites, draw = list[Site](), member_draw(stack, 0, lambda x: x)

            def note(x: Tensor, site: int, kind: int) -> Tensor:
                sites.append((tuple(x.shape), kind))
                return draw(x, site, kind)

            values = dict(zip(stack.names, stack.parameters)) | stack.buffers
            held = {name: value[0].detach().clone() for name, value in values.items()}
            for name in stack.names:
                held[name].requires_grad_()  # a loss may differentiate by them
            with keeping_generators():
                evaluate(LossModule(stack.templates[0], self.loss, batch), held, note, [x[0] for x in flatten(batch)])
            self.sites[forms] = sites
        return self.sites[forms]


def evaluate(module: LossModule, values: Mapping[str, Tensor], draw: DrawAtSite, inputs: Sequence[Tensor]) -> Results:
    """Return the results of a member by PyTorch. Fused attention has no rule for `vmap`, and would be computed member by member."""
    with MemberFunctions(draw), sdpa_kernel(SDPBackend.MATH):
        return call_loss(module, values, inputs)


def member_draw(stack: Stack, k: int, convert: Callable[[Tensor], Tensor]) -> DrawAtSite:
    """Return a function that draws for one member. It knows a site by a number of torch's generator, which a checkpointed part sets back
    when it runs again in the backward pass."""
    sites: dict[float, int] = {}

    def draw(x: Tensor, site: int, kind: int) -> Tensor:
        site = sites.setdefault(float(torch.rand((), dtype=torch.float64)), len(sites))
        return convert(draw_site(stack.seeds[k : k + 1], site, kind, x.shape, stack.step_count, stack.weights)[0])

    return draw


@contextmanager
def unvalidated() -> Iterator[None]:
    """Let distributions take numbers unchecked, since no trace can read them. The steps of autograd beside it check them."""
    before = torch.distributions.Distribution._validate_args
    torch.distributions.Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        torch.distributions.Distribution.set_default_validate_args(before)


@contextmanager
def keeping_generators() -> Iterator[None]:
    """Restore the generators of torch, Python and numpy afterwards."""
    python, arrays = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=()):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(arrays)


def seed_generators(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


def take_buffers(results: Results) -> dict[str, Tensor]:
    """Take the buffers that a step replaces out of its results."""
    return {name: results.pop((kind, name)) for kind, name in list(results) if kind == BUFFER}


def check_attributes(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Raise if a step changes a number or text of the module. Members share it, and a program does not see it."""
    for name, value in after.items():
        if isinstance(value, int | float | str) and (name not in before or before[name] != value):
            raise EngineError(f"a step changes the module's attribute {name}, which is no tensor: make it a buffer")


def forms_of(batch: Batch) -> Forms:
    return tuple((tuple(x.shape[1:]), x.dtype) for x in flatten(batch))


def is_integer(x: Tensor) -> bool:
    return not x.is_floating_point() and x.dtype != torch.bool


def to_double(x: Tensor) -> Tensor:
    """Return a tensor of real numbers in float64, and any other tensor as it is."""
    return x.double() if x.is_floating_point() else x
