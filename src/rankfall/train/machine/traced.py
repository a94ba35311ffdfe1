"""The step of a cell's network and objective as a function that the engine can trace, and its program for batches of a form.

Inputs, targets and tensors that the objective draws are inputs of the step. The place and the seeds of a batch differ from step to step,
and a traced step cannot read them.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass, replace
from functools import lru_cache
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from rankfall.design import Architecture, Component, Training, canonical
from rankfall.nets.network import Shape, build
from rankfall.nets.primitives import no_dropout
from rankfall.random_streams import words
from rankfall.train import recipe
from rankfall.train.dropout import LEVELS
from rankfall.train.objectives._base import Graded, Objective, Samples
from rankfall.train.philox import to_signed
from thousandfold.graph import Untraceable
from thousandfold.program.fusion import Divide
from thousandfold.step import Layout, Name, StepProgram, keep_program, load_program, step_program


class TracedDropout:
    """The dropout of a traced step, like `SeededDropout`."""

    def __init__(self, rate: float) -> None:
        self.threshold = round(rate * LEVELS)
        self.scale = LEVELS / (LEVELS - self.threshold)

    def __call__(self, x: Tensor, site: str) -> Tensor:
        if x.shape[0] != 1:
            raise Untraceable(f"dropout of a tensor {tuple(x.shape)} whose first axis is not the members, at {site}")
        return x * torch.ops.thousandfold.dropout_mask(
            x.detach(), to_signed(words(site)[0]), self.threshold, self.scale
        )


class Unread:
    """A value that differs from step to step and is no input of the step."""

    def __init__(self, description: str) -> None:
        self.description = description

    def refuse(self, *_: Any) -> NoReturn:
        raise Untraceable(f"what it computes depends on {self.description}, so that no two steps are alike")

    __iter__ = __len__ = __getitem__ = __bool__ = __eq__ = __hash__ = __str__ = __repr__ = __add__ = __radd__ = refuse  # type: ignore[assignment]


class GradedModule(nn.Module):
    """The module and its objective as one module, so that one call can replace the parameters of both."""

    def __init__(self, module: nn.Module, objective: Objective, batch: Samples, drop: Any) -> None:
        super().__init__()
        self.module, self.objective, self.batch, self.drop = module, objective, batch, drop

    def forward(self, inputs: Tensor, targets: Tensor, *drawn: Tensor) -> Graded:
        tensors: dict[str, Any] = {"inputs": inputs, "targets": targets}
        if self.batch.drawn is not None:
            tensors["drawn"] = drawn
        return self.objective(self.module, replace(self.batch, **tensors), self.drop)


def batch_tensors(batch: Samples) -> list[Tensor]:
    """Return the tensors of a batch in the order in which `forward` takes them."""
    return [batch.inputs, batch.targets, *(batch.drawn or ())]


def graded_program(
    module: nn.Module,
    objective: Objective,
    batch: Samples,
    dropout: float,
    gradient: bool = True,
    divide: Divide | None = None,
) -> StepProgram:
    """Return the program of a module and samples of one member. Without `gradient` it is an evaluation, which has no dropout."""
    unread: dict[str, Any] = {"seeds": Unread("a member's seed"), "place": Unread("the place of a batch in training")}
    drop: Any = TracedDropout(dropout) if dropout and gradient else no_dropout
    step = GradedModule(module, objective, replace(batch, **unread), drop)

    def function(values: Mapping[str, Tensor], *tensors: Tensor) -> tuple[Tensor, dict[Name, Tensor]]:
        graded = torch.func.functional_call(step, dict(values), tensors)
        results = {("loss", ""): graded.loss, ("asked", ""): graded.asked}
        for kind, metrics in (("sums", graded.sums), ("asked_of", graded.asked_of)):
            results |= {(kind, name): value for name, value in metrics.items()}
        return graded.loss, results

    parameters = {name: value.detach() for name, value in step.named_parameters()}
    tensors, samples = batch_tensors(batch), batch.inputs.shape[1]
    lanes = tuple(1 if x.dim() > 1 and x.shape[1] == samples else None for x in tensors)
    length = batch.inputs.shape[2] if batch.inputs.dim() > 2 else 0
    layout = Layout(lanes, length, max(1, batch.size_in))
    return step_program(function, parameters, tensors, layout, gradient, divide)


KEPT = 256  # programs in memory; an objective that draws lengths has one for each length


@dataclass(frozen=True)
class StepForm:
    """The properties of a batch on which a program depends."""

    shapes: tuple[tuple[int, ...], ...]  # (B, T) or (B, T, C), of inputs, targets and drawn tensors
    formats: tuple[torch.dtype, ...]
    same: bool  # inputs and targets are one tensor
    drawn: bool
    size_in: int
    special: int
    constant: int | None
    learned: bool

    @staticmethod
    def from_batch(batch: Samples) -> "StepForm":
        shapes, formats = zip(*((tuple(x.shape[1:]), x.dtype) for x in batch_tensors(batch)))
        same, drawn = batch.inputs is batch.targets, batch.drawn is not None
        return StepForm(shapes, formats, same, drawn, batch.size_in, batch.special, batch.constant, batch.learned)

    def samples(self) -> Samples:
        """Return samples of this form for one member, all zeros."""
        inputs, targets, *drawn = (
            torch.zeros(1, *shape, dtype=dtype) for shape, dtype in zip(self.shapes, self.formats)
        )
        facts = self.size_in, self.special, self.constant, self.learned, tuple(drawn) if self.drawn else None
        return Samples(inputs, inputs if self.same else targets, [0], (), *facts)


@lru_cache(KEPT)
def program_of(
    architecture: Architecture,
    shape: Shape,
    dtype: str,
    objective: Component,
    parts: tuple[Any, ...],
    dropout: float,
    form: StepForm,
    code: str,
    gradient: bool,
    divide: Divide | None = None,
) -> StepProgram:
    """Return the program of a step, from the caches or newly written.

    `parts`: the loaded components of network and objective, so that a reloaded module gets a new program. `code`: digest of all code that
    the program depends on, which is part of its key in the cache for other processes; if empty, this cache is not used. `divide`: see
    `fuse`.
    """
    made_from = replace(architecture, name=""), shape, dtype, objective, dropout, gradient, divide is not None
    name = name_program(code, *made_from, repr(form)) if code else None
    program = load_program(name) if name else None
    if program is None:
        module = build(architecture, shape, 1, getattr(torch, dtype))
        function = recipe.objective(Training("", objective=objective))
        program = graded_program(module, function, form.samples(), dropout, gradient, divide)
        if name:
            keep_program(name, program)
    return program


def digest_code(code: Mapping[str, str]) -> str:
    """Return one digest of all files and their digests, or an empty text if there are none."""
    return hashlib.sha256(canonical(dict(code)).encode()).hexdigest() if code else ""


def name_program(code: str, *made_from: Any) -> str:
    """Return the name of a program in the cache. `made_from`: dataclasses and other values from which the step is made."""
    values = [asdict(item) if is_dataclass(item) and not isinstance(item, type) else item for item in made_from]
    text = canonical([code, torch.__version__, values])
    return hashlib.sha256(text.encode()).hexdigest()[:32]
