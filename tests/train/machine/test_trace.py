"""Guards that the recorded step is the one that PyTorch's own tracer records, and what a recording takes for constant."""

import operator
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_aggregate

from rankfall.design import Architecture, Component, Training
from rankfall.nets.network import Shape, build
from rankfall.train import recipe
from rankfall.train.objectives._base import Samples

pytest.importorskip("numba")
from rankfall.train.machine import trace as tracing
from rankfall.train.machine.decompositions import decompositions
from rankfall.train.machine.graph import AtenGraph, form_of, replace_in
from rankfall.train.machine.recorder import AtenRecorder, Untraceable
from rankfall.train.machine.step import StepProgram, step_program

TOKENS = Shape("tokens", "classes", 5, 7, 6)
ENDS = {"embedding": Component("token"), "head": Component("classifier"), "heads": 2, "width": 8}


def by_make_fx(function: Callable[..., Any], *given: Tensor) -> AtenGraph:
    made = make_fx(torch.func.functionalize(function), decomposition_table=dict(decompositions()), tracing_mode="fake")(
        *given
    )
    graph, found = AtenGraph(), dict[Any, Any]()
    for node in made.graph.nodes:
        args, kwargs = map_aggregate((node.args, node.kwargs), lambda x: found.get(x) if x in found else x)  # type: ignore
        if node.op == "placeholder":
            found[node] = graph.give(form_of(node.meta["val"]))
        elif node.op == "get_attr":
            found[node] = graph.keep(getattr(made, node.target))
        elif node.target is operator.getitem:
            found[node] = args[0][args[1]]
        elif node.op == "call_function":
            forms = partial(replace_in, node.meta["val"], Tensor, form_of)
            found[node] = graph.add(node.target, replace_in(args, Tensor, form_of), dict(kwargs), forms)
        else:
            graph.results = args[0]
    return graph


def program(depth: int = 1, gradient: bool = True, objective: str = "classes", **parts: Any) -> StepProgram:
    named = {kind: Component(value) if isinstance(value, str) else value for kind, value in parts.items()}
    architecture = Architecture("a", depth=depth, **{**ENDS, "mlp": Component("gelu"), **named})
    module = build(architecture, TOKENS, 1, torch.float32)
    own = recipe.objective(Training("t", objective=Component(objective)))
    drawn = torch.arange(30).view(1, 6, 5) % 6
    return step_program(module, own, Samples(drawn, drawn.clone(), [0], (), 7, 6, learned=True), 0.1, gradient)


NETWORKS: dict[str, dict[str, Any]] = {
    "transformer": {"depth": 2},
    "evaluation": {"gradient": False},
    "causal, rotated": {"mask": "causal", "position": "rope", "normaliser": "sink"},
    "toeplitz": {"position": "toeplitz", "normaliser": "l2", "norm": "rms"},
    "gate": {"attention": "own:Gated", "norm": "column"},
    "delta rule": {"attention": "own:Delta", "sentinels": "bos"},
    "linear": {"attention": "linear", "mlp": "swiglu"},
    "streams": {"block": Component("hyper", {"mixing": "doubly_stochastic", "rounds": 2}), "residual": "add"},
    "over layers": {"depth": 2, "residual": "attentive"},
}


@pytest.mark.parametrize("name", NETWORKS)
def test_programs_are_those_of_torchs_tracer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    found = program(**NETWORKS[name])
    monkeypatch.setattr(tracing, "as_graph", by_make_fx)
    wanted = program(**NETWORKS[name])
    assert np.array_equal(found.program.words, wanted.program.words)
    assert np.array_equal(found.program.constants, wanted.program.constants)
    assert found.program.arena == wanted.program.arena and found.names == wanted.names


def record(function: Callable[[Tensor], Any]) -> AtenGraph:
    return AtenRecorder().run(torch.func.functionalize(function), form_of(torch.zeros(2, 3)))


def test_what_no_data_enter_is_computed_and_may_be_decided_by() -> None:
    graph = record(lambda x: x * torch.arange(3) if torch.arange(3).sum() == 3 else x)
    (product,) = graph.needed()[-1:]
    assert graph.known[product.args[1].number].tolist() == [0, 1, 2]
    with pytest.raises(Untraceable, match="numbers of the data"):
        record(lambda x: x if (x + torch.arange(3)).sum() == 3 else -x)


def test_what_nobody_has_written_is_zeros() -> None:
    """Not what lies in the memory of this process."""
    graph = record(lambda x: x * torch.empty(7, 2, 3) + torch.empty_like(x))
    assert not any("empty" in operation.target._schema.name for operation in graph.operations)
    assert all(not value.any() for value in graph.known.values())


def test_a_tensor_that_a_module_holds_and_changes_is_refused() -> None:
    count = torch.zeros(())
    with pytest.raises(Untraceable, match="changes a tensor that it holds"):
        record(lambda x: x + count.add_(1))
    assert count == 0
