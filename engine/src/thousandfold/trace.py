"""The training step of one member as a graph of ATen operations: from the tensors of a batch to gradients, loss and metrics.

Everything that Python draws, computes or decides during the trace becomes part of the graph, so a trace serves all steps only if none of it
differs between steps. The tensors of a batch do differ: they are inputs of the graph. Masks of dropout differ: the graph has an operation
for them. A traced step cannot decide by data, since its tensors have no values.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from thousandfold.graph import AtenGraph, Untraceable, form_of
from thousandfold.recorder import AtenRecorder

Name = tuple[str, str]  # kind and name of a result, such as ("metric", "accuracy")
# (parameters by name, tensors of a batch) -> loss of one element, and results by name
StepFunction = Callable[..., tuple[Tensor, Mapping[Name, Tensor]]]


@torch.library.custom_op("thousandfold::dropout_mask", mutates_args=())
def dropout_mask(x: Tensor, site: int, threshold: int, scale: float) -> Tensor:
    """Stand for the mask of one site in the network. The engine draws it."""
    raise AssertionError("only traced")


dropout_mask.register_fake(lambda x, site, threshold, scale: torch.empty_like(x))


# A change in place becomes `copy` (`functionalize`), of which PyTorch has no derivative. It warns of the kernel that raises.
DERIVED = torch.library.Library("aten", "IMPL")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    DERIVED.impl("copy", lambda x, y, non_blocking=False: y.to(x.dtype).expand(x.shape).clone(), "Autograd")


@dataclass(frozen=True)
class Trace:
    """A traced step. `graph` maps parameters and batch tensors to a gradient or None per parameter, and to the values in `names`."""

    graph: AtenGraph
    parameters: Mapping[str, Tensor]
    gradient: bool  # whether the graph returns gradients; else only the values that `names` lists
    names: tuple[Name, ...]
    integers: tuple[bool, ...]  # which of these values are integers


def trace(
    function: StepFunction, parameters: Mapping[str, Tensor], tensors: Sequence[Tensor], gradient: bool = True
) -> Trace:
    """Trace a step of one member. Without `gradient` it is an evaluation."""
    names: list[Name] = []
    integers: list[bool] = []

    def evaluate(values: list[Tensor], *given: Tensor) -> tuple[Tensor, list[Tensor]]:
        loss, results = function(dict(zip(parameters, values)), *given)
        names[:] = list(results)
        integers[:] = [not value.is_floating_point() for value in results.values()]
        return loss.sum(), list(results.values())

    def passes(*given: Tensor) -> tuple[Any, ...]:
        # Changes in place become operations that return new tensors before autograd sees them.
        differentiated = torch.func.grad_and_value(torch.func.functionalize(evaluate), has_aux=True)
        gradients, (_, results) = differentiated(list(given[: len(parameters)]), *given[len(parameters) :])
        return (*gradients, *results)

    def evaluates(*given: Tensor) -> tuple[Any, ...]:
        return tuple(evaluate(list(given[: len(parameters)]), *given[len(parameters) :])[1])

    graph = as_graph(passes if gradient else evaluates, *parameters.values(), *tensors)
    return Trace(graph, parameters, gradient, tuple(names), tuple(integers))


def as_graph(function: Callable[..., Any], *given: Tensor) -> AtenGraph:
    """Return a function as a graph of few kinds of ATen operations, none of which changes a tensor."""
    try:
        with sdpa_kernel(SDPBackend.MATH):  # split PyTorch's fused attention into its operations
            return AtenRecorder().run(torch.func.functionalize(function), *map(form_of, given))
    except Untraceable:
        raise
    except Exception as error:
        first = str(error).strip().splitlines()[0] if str(error) else ""
        raise Untraceable(f"{type(error).__name__}: {first}") from error
