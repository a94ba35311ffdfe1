"""The training step of one member as a graph of ATen operations: from inputs and targets to gradients, loss and metrics.

What Python draws, computes or decides while it is traced becomes part of the graph, so a trace serves all steps only if nothing of that
differs between them. Between steps of one member inputs, targets and what the objective has drawn differ, which are the graph's inputs; the
masks of dropout, for which the graph has an operation of its own; and the place and the seeds of a batch, which cannot be read while a step
is traced. Decisions by numbers of the data cannot be made there either: tensors have none.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from rankfall.nets.dropout import no_dropout
from rankfall.streams import words
from rankfall.train.dropout import LEVELS
from rankfall.train.machine.graph import AtenGraph, form_of
from rankfall.train.machine.recorder import AtenRecorder, Untraceable
from rankfall.train.machine.written import WritesWholes
from rankfall.train.objectives._base import Graded, Objective, Samples
from rankfall.train.philox import to_signed

MASK = "rankfall::dropout_mask"


@torch.library.custom_op(MASK, mutates_args=())
def dropout_mask(x: Tensor, site: int, threshold: int, scale: float) -> Tensor:
    """Stands for the mask of a place in the network; the machine draws it."""
    raise AssertionError("only traced")


dropout_mask.register_fake(lambda x, site, threshold, scale: torch.empty_like(x))


class TracedDropout:
    """As `SeededDropout`, for a graph."""

    def __init__(self, rate: float) -> None:
        self.threshold = round(rate * LEVELS)
        self.scale = LEVELS / (LEVELS - self.threshold)

    def __call__(self, x: Tensor, site: str) -> Tensor:
        if self.threshold == 0:
            return x
        if x.shape[0] != 1:
            raise Untraceable(f"dropout of a tensor {tuple(x.shape)} whose first axis is not the members, at {site}")
        return x * torch.ops.rankfall.dropout_mask(x.detach(), to_signed(words(site)[0]), self.threshold, self.scale)


class Unread:
    """What differs from step to step and is no input of the graph."""

    def __init__(self, what: str) -> None:
        self.what = what

    def refuse(self, *given: Any) -> NoReturn:
        raise Untraceable(f"what it computes depends on {self.what}, so that no two steps are alike")

    __iter__ = __len__ = __getitem__ = __bool__ = __eq__ = __hash__ = __str__ = __repr__ = __add__ = __radd__ = refuse  # type: ignore[assignment]


@dataclass(frozen=True)
class Trace:
    """`graph`: of parameters and what the batch holds; gives a gradient for each parameter (None: none), then what `names` say."""

    graph: AtenGraph
    parameters: Mapping[str, Tensor]
    gradient: bool  # whether the graph gives gradients; else it gives what `names` say alone
    names: tuple[tuple[str, str], ...]  # ("loss" | "asked" | "sums" | "asked_of", metric)
    integers: tuple[bool, ...]  # which of them are


class GradedModule(nn.Module):
    """The module and its objective as one, so that parameters can be given to both."""

    def __init__(self, module: nn.Module, objective: Objective, batch: Samples, drop: Any) -> None:
        super().__init__()
        self.module, self.objective, self.batch, self.drop = module, objective, batch, drop

    def forward(self, inputs: Tensor, targets: Tensor, *drawn: Tensor) -> Graded:
        given: dict[str, Any] = {"inputs": inputs, "targets": targets}
        if self.batch.drawn is not None:
            given["drawn"] = drawn
        return self.objective(self.module, replace(self.batch, **given), self.drop)


def batch_tensors(batch: Samples) -> list[Tensor]:
    """The tensors of a batch, as `forward` takes them."""
    return [batch.inputs, batch.targets, *(batch.drawn or ())]


def trace(module: nn.Module, objective: Objective, batch: Samples, dropout: float, gradient: bool = True) -> Trace:
    """Of a module of one member, and samples of one member. Without the gradient: an evaluation, in which nothing is dropped."""
    unread: dict[str, Any] = {"seeds": Unread("a member's seed"), "place": Unread("the place of a batch in training")}
    drop: Any = TracedDropout(dropout) if dropout and gradient else no_dropout
    step = GradedModule(module, objective, replace(batch, **unread), drop)
    parameters = {name: value.detach() for name, value in step.named_parameters()}
    names: list[tuple[str, str]] = []
    integers: list[bool] = []

    def grade(values: list[Tensor], *given: Tensor) -> tuple[Tensor, list[Tensor]]:
        found = torch.func.functional_call(step, dict(zip(parameters, values)), given)
        named = [(("loss", ""), found.loss), (("asked", ""), found.asked)]
        for kind, metrics in (("sums", found.sums), ("asked_of", found.asked_of)):
            named += [((kind, name), value) for name, value in metrics.items()]
        names[:] = [name for name, _ in named]
        integers[:] = [not value.is_floating_point() for _, value in named]
        return found.loss.sum(), [value for _, value in named]

    def passes(*given: Tensor) -> tuple[Any, ...]:
        differentiated = torch.func.grad_and_value(grade, has_aux=True)
        gradients, (_, found) = differentiated(list(given[: len(parameters)]), *given[len(parameters) :])
        return (*gradients, *found)

    def evaluates(*given: Tensor) -> tuple[Any, ...]:
        return tuple(grade(list(given[: len(parameters)]), *given[len(parameters) :])[1])

    graph = as_graph(passes if gradient else evaluates, *parameters.values(), *batch_tensors(batch))
    return Trace(graph, parameters, gradient, tuple(names), tuple(integers))


def as_graph(function: Callable[..., Any], *given: Tensor) -> AtenGraph:
    """Of ATen operations, few kinds of them, none of which changes a tensor."""
    try:
        with (
            WritesWholes(),
            sdpa_kernel(SDPBackend.MATH),
        ):  # PyTorch's own attention as the operations that it is made of
            return AtenRecorder().run(torch.func.functionalize(function), *map(form_of, given))
    except Untraceable:
        raise
    except Exception as error:
        first = str(error).strip().splitlines()[0] if str(error) else ""
        raise Untraceable(f"{type(error).__name__}: {first}") from error
