"""The form of a batch, and the program of a network's step for batches of this form."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass, replace
from functools import lru_cache
from typing import Any

import torch

from rankfall.design import Architecture, Component, Training, canonical
from rankfall.nets.network import Shape, build
from rankfall.train import recipe
from rankfall.train.machine.traced import batch_tensors, graded_program
from rankfall.train.objectives._base import Samples
from thousandfold.program.fusion import Divide
from thousandfold.step import StepProgram, keep_program, load_program

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
