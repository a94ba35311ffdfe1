"""The training step of one member as a graph of ATen operations: from inputs and targets to gradients, loss and metrics.

Everything that Python draws, computes or decides during the trace becomes part of the graph, so a trace serves all steps only if none of it
differs between steps. Inputs, targets and tensors that the objective draws do differ: they are inputs of the graph. Masks of dropout
differ: the graph has an operation for them. The place and the seeds of a batch differ: a traced step cannot read them. A traced step cannot
decide by data either, since its tensors have no values.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from rankfall.nets.dropout import no_dropout
from rankfall.random_streams import words
from rankfall.train.dropout import LEVELS
from rankfall.train.machine.graph import AtenGraph, form_of
from rankfall.train.machine.recorder import AtenRecorder, Untraceable
from rankfall.train.machine.written import WritesWholes
from rankfall.train.objectives._base import Graded, Objective, Samples
from rankfall.train.philox import to_signed

MASK = "rankfall::dropout_mask"


@torch.library.custom_op(MASK, mutates_args=())
def dropout_mask(x: Tensor, site: int, threshold: int, scale: float) -> Tensor:
    """Stand for the mask of one site in the network. The machine draws it."""
    raise AssertionError("only traced")


dropout_mask.register_fake(lambda x, site, threshold, scale: torch.empty_like(x))


class TracedDropout:
    """The dropout of a graph, like `SeededDropout`."""

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
    """A value that differs from step to step and is no input of the graph."""

    def __init__(self, what: str) -> None:
        self.what = what

    def refuse(self, *given: Any) -> NoReturn:
        raise Untraceable(f"what it computes depends on {self.what}, so that no two steps are alike")

    __iter__ = __len__ = __getitem__ = __bool__ = __eq__ = __hash__ = __str__ = __repr__ = __add__ = __radd__ = refuse  # type: ignore[assignment]


@dataclass(frozen=True)
class Trace:
    """A traced step. `graph` maps parameters and batch tensors to a gradient or None per parameter, and to the values in `names`."""

    graph: AtenGraph
    parameters: Mapping[str, Tensor]
    gradient: bool  # whether the graph returns gradients; else only the values that `names` lists
    names: tuple[tuple[str, str], ...]  # ("loss" | "asked" | "sums" | "asked_of", metric)
    integers: tuple[bool, ...]  # which of these values are integers


class GradedModule(nn.Module):
    """The module and its objective as one module, so that one call can replace the parameters of both."""

    def __init__(self, module: nn.Module, objective: Objective, batch: Samples, drop: Any) -> None:
        super().__init__()
        self.module, self.objective, self.batch, self.drop = module, objective, batch, drop

    def forward(self, inputs: Tensor, targets: Tensor, *drawn: Tensor) -> Graded:
        given: dict[str, Any] = {"inputs": inputs, "targets": targets}
        if self.batch.drawn is not None:
            given["drawn"] = drawn
        return self.objective(self.module, replace(self.batch, **given), self.drop)


def batch_tensors(batch: Samples) -> list[Tensor]:
    """Return the tensors of a batch in the order in which `forward` takes them."""
    return [batch.inputs, batch.targets, *(batch.drawn or ())]


def trace(module: nn.Module, objective: Objective, batch: Samples, dropout: float, gradient: bool = True) -> Trace:
    """Trace a module on samples, both of one member. Without `gradient` it is an evaluation, which has no dropout."""
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
    """Return a function as a graph of few kinds of ATen operations, none of which changes a tensor."""
    try:
        with (
            WritesWholes(),
            sdpa_kernel(SDPBackend.MATH),
        ):  # split PyTorch's fused attention into its operations
            return AtenRecorder().run(torch.func.functionalize(function), *map(form_of, given))
    except Untraceable:
        raise
    except Exception as error:
        first = str(error).strip().splitlines()[0] if str(error) else ""
        raise Untraceable(f"{type(error).__name__}: {first}") from error
