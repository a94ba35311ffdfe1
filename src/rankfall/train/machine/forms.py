"""The form of a batch, and the program of a network's step on batches of that form."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch

from rankfall.design import Architecture, Component, Training
from rankfall.nets.network import Shape, build
from rankfall.train import recipe
from rankfall.train.machine.program.fusion import Divide
from rankfall.train.machine.program_cache import keep_program, load_program, name_program
from rankfall.train.machine.step import StepProgram, step_program
from rankfall.train.machine.trace import batch_tensors
from rankfall.train.objectives._base import Samples

KEPT = 256  # programs, of all shapes of the last few networks; an objective that draws a length has one for each


@dataclass(frozen=True)
class StepForm:
    """All that a program depends on, but for the code: traces are of this alone."""

    shapes: tuple[tuple[int, ...], ...]  # (B, T) or (B, T, C), of inputs, targets and what is drawn
    formats: tuple[torch.dtype, ...]
    same: bool  # inputs and targets are one
    drawn: bool
    size_in: int
    special: int
    constant: int | None
    learned: bool

    @staticmethod
    def of(batch: Samples) -> "StepForm":
        shapes, formats = zip(*((tuple(x.shape[1:]), x.dtype) for x in batch_tensors(batch)))
        whose = batch.inputs is batch.targets, batch.drawn is not None
        return StepForm(shapes, formats, *whose, batch.size_in, batch.special, batch.constant, batch.learned)

    def samples(self) -> Samples:
        """Some samples of this form, of one member."""
        inputs, targets, *drawn = (
            torch.zeros(1, *shape, dtype=dtype) for shape, dtype in zip(self.shapes, self.formats)
        )
        about = self.size_in, self.special, self.constant, self.learned, tuple(drawn) if self.drawn else None
        return Samples(inputs, inputs if self.same else targets, [0], (), *about)


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
    """`parts`: what the network and objective are made of, as loaded: of a module that is loaded anew a program is written anew.
    `code`: the digest of all code that the program depends on, under which it is kept for other processes; empty: it is not kept.
    `divide`: see `fuse`."""
    made_from = replace(architecture, name=""), shape, dtype, objective, dropout, gradient, divide is not None
    name = name_program(code, *made_from, repr(form)) if code else None
    found = load_program(name) if name else None
    if found is None:
        module = build(architecture, shape, 1, getattr(torch, dtype))
        function = recipe.objective(Training("", objective=objective))
        found = step_program(module, function, form.samples(), dropout, gradient, divide)
        if name:
            keep_program(name, found)
    return found
