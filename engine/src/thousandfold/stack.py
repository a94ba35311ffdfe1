"""A stack: ordinary modules, one for each seed, as rows. The modules themselves have no axis of members."""

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn

from thousandfold.errors import EngineError
from thousandfold.graph import Untraceable
from thousandfold.member_functions import keys_of
from thousandfold.optimizers import DIVERGED, RUNNING, PerMember, RowOptimizer

NORM_EPS = 1e-6  # as in `torch.nn.utils.clip_grad_norm_`


class Stack:
    """The `Rows` of modules. Parameters that need no gradient count as buffers."""

    def __init__(
        self, modules: Sequence[nn.Module], seeds: Sequence[int], optimizer: RowOptimizer, device: torch.device
    ) -> None:
        check_optimizer(optimizer)
        check_alike(modules)
        check_apart(modules, seeds)
        self.modules, self.seeds, self.optimizer, self.device = modules, list(seeds), optimizer, device
        self.apart = differing_attribute(modules)  # an attribute; then each member needs its own module
        self.templates = [deepcopy(module).to(device) for module in (modules if self.apart else modules[:1])]
        trained = [trained_parameters(module) for module in modules]
        self.names = list(trained[0])
        self.weights = torch.cat(
            [torch.stack([tensors[name].detach().flatten() for tensors in trained]) for name in self.names], 1
        ).to(device)  # (K, P)
        start, self.parameters, self.parts = 0, list[Tensor](), list[slice]()
        for value in trained[0].values():
            part = self.weights[:, start : start + value.numel()].view(len(modules), *value.shape)
            self.parameters.append(part.detach().requires_grad_())
            self.parts.append(slice(start, start + value.numel()))
            start += value.numel()
        held = [other_tensors(module) for module in modules]
        self.buffers = {name: torch.stack([tensors[name] for tensors in held]).to(device) for name in held[0]}

        self.slots = tuple(torch.zeros_like(self.weights) for _ in range(optimizer.slots))
        self.grads, self.scratch = torch.empty_like(self.weights), torch.empty_like(self.weights)
        self.lr = self.lr_now = self.column("lr", optimizer.lr)
        self.decay = (
            self.column("weight_decay", optimizer.weight_decay) if torch.tensor(optimizer.weight_decay).any() else None
        )
        self.clip = None if optimizer.clip is None else self.column("clip", optimizer.clip)
        self.status = torch.zeros(len(modules), dtype=torch.int64, device=device)
        self.last_step = torch.zeros_like(self.status)  # steps that counted for each member
        self.step_count = 0
        # Which parameters a member's loss did not use in the last step, and the steps that used them (K, parameters).
        self.idle = torch.zeros(len(modules), len(self.names), dtype=torch.bool, device=device)
        self.used = torch.zeros_like(self.idle, dtype=torch.int64)

    def __len__(self) -> int:
        return len(self.seeds)

    def column(self, name: str, values: PerMember) -> Tensor:
        """Return a number for each member (K, 1)."""
        numbers = torch.as_tensor(values, dtype=self.weights.dtype, device=self.device).flatten()
        if len(numbers) not in (1, len(self)):
            raise EngineError(f"expected one {name}, or one for each of {len(self)} members; found {len(numbers)}")
        if not (numbers >= 0).all():
            raise EngineError(f"expected no negative {name}; found {values}")
        return numbers.expand(len(self)).contiguous().unsqueeze(1)

    def differentiate(self, loss: Tensor) -> None:
        """Write the gradient of each member's own loss (K,) to `grads`."""
        gradients = torch.autograd.grad(loss.sum(), self.parameters, allow_unused=True)
        self.idle[:] = torch.tensor([gradient is None for gradient in gradients])
        parts = [
            torch.zeros_like(weights) if gradient is None else gradient
            for weights, gradient in zip(self.parameters, gradients)
        ]
        torch.cat([part.reshape(len(part), -1) for part in parts], 1, out=self.grads)

    def clear_gradients(self) -> None:
        self.idle.fill_(True)
        self.grads.zero_()

    def write_gradient(self, k: int, gradient: Sequence[Tensor | None]) -> None:
        """Write one member's gradient, which has None for a parameter that its loss does not use."""
        for i, (part, value) in enumerate(zip(self.parts, gradient, strict=True)):
            if value is not None:
                self.idle[k, i] = False
                self.grads[k, part] = value.flatten()

    def counted(self) -> Tensor:
        """Return the steps that used each parameter (K, parameters) if all steps left the same ones."""
        return torch.where(self.idle, 0, self.last_step.unsqueeze(1))

    @contextmanager
    def leaving(self, idle: Tensor) -> Iterator[None]:
        """Leave these parameters and their slots as they are, as `torch.optim` leaves parameters without a gradient."""
        parts = [part for part, unused in zip(self.parts, idle.tolist()) if unused]
        kept = [[tensor[:, part].clone() for part in parts] for tensor in (self.weights, *self.slots)]
        yield
        for tensor, old in zip((self.weights, *self.slots), kept):
            for part, values in zip(parts, old):
                tensor[:, part] = values

    @contextmanager
    def keeping_buffers(self) -> Iterator[None]:
        """Restore the buffers afterwards, such as running statistics."""
        kept = {name: value.clone() for name, value in self.buffers.items()}
        try:
            yield
        finally:
            for name, value in kept.items():
                self.buffers[name].copy_(value)

    def update(self, loss: Tensor) -> None:
        """Take one step of the optimiser along `grads`, which are the gradients of these losses (K,)."""
        norm = self.grads.norm(dim=1, keepdim=True)  # (K, 1)
        # A member whose loss or gradient is no longer finite stops here with its last finite weights. Other members are not affected.
        broken = ~(loss.isfinite() & norm.squeeze(1).isfinite()) & (self.status == RUNNING)
        self.status.masked_fill_(broken, DIVERGED)
        running = (self.status == RUNNING).unsqueeze(1)
        self.step_count += 1
        self.last_step += running.squeeze(1)
        if self.clip is not None:
            self.grads.mul_((self.clip / (norm + NORM_EPS)).clamp_(max=1.0))
        self.grads.masked_fill_(~running, 0.0)
        # As in `torch.optim`, a parameter without a gradient is left, and counts no step.
        stepping = running & ~self.idle
        self.used += stepping
        counts = self.used[stepping].unique().tolist()
        whole = len(counts) == 1 and bool(stepping.all())
        sizes = torch.tensor([part.stop - part.start for part in self.parts], device=self.device)
        for t in counts:
            tensors = self.weights, self.grads, *self.slots
            now = tensors if whole else tuple(tensor.clone() for tensor in tensors)
            with torch.no_grad():
                self.optimizer.step(now[0], now[1], now[2:], self.lr_now, self.decay, t, self.scratch)
            if not whole:
                mask = (stepping & (self.used == t)).repeat_interleave(sizes, 1)  # (K, P)
                for tensor, stepped in zip(tensors, now):
                    tensor.copy_(torch.where(mask, stepped, tensor))

    def replace(self, members: slice, buffers: Mapping[str, Tensor]) -> None:
        """Write the values that a step gives to buffers of some members."""
        for name, value in buffers.items():
            buffer = self.buffers[name][members] if name in self.buffers else None
            if buffer is None or value.dtype != buffer.dtype or value.shape not in (buffer.shape, buffer.shape[1:]):
                raise EngineError(f"a step gives the buffer {name} another shape or format: {tuple(value.shape)}")
            buffer.copy_(value)

    def module(self, k: int) -> nn.Module:
        """Return the module of a member with its trained weights."""
        module = self.modules[k]
        values = dict(zip(self.names, self.parameters)) | self.buffers
        named = dict(module.named_parameters()) | dict(module.named_buffers())
        with torch.no_grad():
            for name, stacked in values.items():
                named[name].copy_(stacked[k])
        return module

    def state(self) -> dict[str, Tensor]:
        """Return everything that changes in training. Random streams need no state, since they depend on the step number."""
        slots = {f"slot{i}": slot for i, slot in enumerate(self.slots)}
        buffers = {f"buffer.{name}": value for name, value in self.buffers.items()}
        counts = {"status": self.status, "last_step": self.last_step, "used": self.used}
        counts["step_count"] = torch.tensor(self.step_count)
        whose = {
            "seeds": torch.from_numpy(keys_of(self.seeds))[:, 0],
            "optimizer": torch.tensor(list(type(self.optimizer).__name__.encode()), dtype=torch.uint8),
        }
        return {"weights": self.weights, **slots, **buffers, **counts, **whose}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Continue from the state of an earlier result. Raise if it belongs to other members or another optimiser."""
        current = self.state()
        if not isinstance(state, Mapping) or any(name not in state for name in ("weights", "seeds", "optimizer")):
            raise EngineError("resume: expected the `state` of an earlier result; found something else")
        optimizer, seeds = bytes(state["optimizer"].tolist()).decode(), state["seeds"]
        if optimizer != type(self.optimizer).__name__:
            raise EngineError(
                f"resume: the state is of the optimiser {optimizer}; found {type(self.optimizer).__name__}"
            )
        if len(seeds) != len(self):
            raise EngineError(f"resume: the state has {len(seeds)} members; found {len(self)} seeds")
        if not torch.equal(seeds.cpu(), current["seeds"]):
            raise EngineError(f"resume: the state is of the seeds {seeds.tolist()}; found {self.seeds}")
        for name, value in current.items():
            if name not in state or state[name].shape != value.shape:
                shape = tuple(state[name].shape) if name in state else "none"
                raise EngineError(f"resume: expected {name} of the shape {tuple(value.shape)}; found {shape}")
        for name, value in current.items():
            value.copy_(state[name])
        self.step_count = int(state["step_count"])


def trained_parameters(module: nn.Module) -> dict[str, Tensor]:
    """Return the parameters that are trained, by name. Tied parameters have one name."""
    return {name: value for name, value in module.named_parameters() if value.requires_grad}


def other_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return buffers and parameters that are not trained, by name."""
    fixed = {name: value.detach() for name, value in module.named_parameters() if not value.requires_grad}
    return fixed | dict(module.named_buffers())


def check_alike(modules: Sequence[nn.Module]) -> None:
    """Raise if modules differ in more than numbers, or have no weights of one number format."""
    if not modules:
        raise EngineError("expected at least one seed; found none")
    for module in modules:
        if not isinstance(module, nn.Module):
            raise EngineError(f"expected a build that returns a module; found {module!r:.60}")
    tensors = [[*module.named_parameters(), *module.named_buffers()] for module in modules]
    forms = [
        [f"{name} {tuple(x.shape)} {x.dtype}" + " (trained)" * x.requires_grad for name, x in named]
        for named in tensors
    ]
    for k, form in enumerate(forms):
        if form != forms[0]:
            expected, actual = next(((a, b) for a, b in zip(forms[0], form) if a != b), (len(forms[0]), len(form)))
            raise EngineError(
                f"expected modules that differ in numbers alone; member 0 has {expected}, member {k} has {actual}"
            )
    formats = {value.dtype for value in trained_parameters(modules[0]).values()}
    if len(formats) != 1 or not formats <= {torch.float32, torch.float64}:
        raise EngineError(f"expected weights in float32 or float64; found {sorted(map(str, formats)) or 'none'}")


def differing_attribute(modules: Sequence[nn.Module]) -> str:
    """Return the name of an attribute in which modules differ, or an empty text."""
    first = attributes_of(modules[0])
    for module in modules[1:]:
        attributes = attributes_of(module)
        for name in first | attributes:
            if not is_same(first.get(name), attributes.get(name)) and "_torchdynamo" not in name:
                return name
    return ""


def attributes_of(module: nn.Module) -> dict[str, Any]:
    """Return the types of a module and its parts, and their attributes, by name."""
    attributes: dict[str, Any] = {}
    for name, part in module.named_modules():
        attributes[f"the type of {name or 'the module'}"] = type(part).__name__
        for key, value in vars(part).items():
            if f"{key}_orig" not in part._parameters:  # those are computed by a norm of weights
                attributes[f"{name}.{key}".removeprefix(".")] = value
    return attributes


def is_same(a: Any, b: Any) -> bool:
    """Return whether two attributes are the same, as far as numbers, texts, functions and tensors that are not trained tell."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        trained = isinstance(a, nn.Parameter) or a.requires_grad  # compared elsewhere, or computed from parameters
        return trained or (a.shape == b.shape and torch.equal(a, b))
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, FunctionType) and isinstance(b, FunctionType):
        return a.__code__ is b.__code__
    return type(a) is type(b) and (not isinstance(a, int | float | str) or a == b)


def check_apart(modules: Sequence[nn.Module], seeds: Sequence[int]) -> None:
    """Raise if two modules are the same object, or train the same parameter."""
    owners: dict[int, int] = {}
    for module, seed in zip(modules, seeds):
        for identity in {id(module), *map(id, trained_parameters(module).values())}:
            if identity in owners:
                raise EngineError(
                    f"expected a build that returns a new module for each seed; seeds {owners[identity]} and {seed} share one"
                )
            owners[identity] = seed


def check_optimizer(optimizer: RowOptimizer) -> None:
    if not isinstance(optimizer, RowOptimizer):
        kind = f"the class {optimizer.__name__}" if isinstance(optimizer, type) else type(optimizer).__name__
        raise EngineError(f"expected an optimiser of this package, such as thousandfold.Adam(lr=1e-3); found {kind}")


def one_line(error: BaseException) -> str:
    """Return the first line of an error's text, with its type if the text alone may say little."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    is_clear = isinstance(error, EngineError | Untraceable | RuntimeError) or not str(error).strip()
    return text if is_clear else f"{type(error).__name__}: {text}"


def whole(number: Any, name: str) -> int:
    """Return a number as an integer. Raise if it is no whole number or negative."""
    try:
        integer = operator.index(number)
    except TypeError:
        integer = -1
    if integer < 0:
        raise EngineError(f"expected {name} as a whole number, not negative; found {number!r}")
    return integer


def seeds_of(seeds: Any) -> list[int]:
    """Return seeds as integers."""
    try:
        return [operator.index(seed) for seed in seeds]
    except TypeError as error:
        raise EngineError(
            f"expected a sequence of whole numbers as seeds, such as range(4); found {seeds!r}"
        ) from error


def factor_of(schedule: Callable[[int], float], step: int) -> float:
    """Return the factor of all rates at a step."""
    try:
        factor = float(schedule(step))
    except (TypeError, ValueError, RuntimeError) as error:
        raise EngineError(f"schedule({step}): expected a number; {one_line(error)}") from error
    if not math.isfinite(factor):
        raise EngineError(f"schedule({step}): expected a finite number; found {factor}")
    return factor
