"""Guards that no integer of a graph becomes larger than is known before any data are there."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rankfall.streams import stream

pytest.importorskip("numba")
from rankfall.train.machine.graph import Ref, form_of, replace_in
from rankfall.train.machine.program.atoms import Unsupported
from rankfall.train.machine.program.integers import IntegerBounds
from rankfall.train.machine.recorder import AtenRecorder

GIVEN = 9
FUNCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], float]] = {
    "add": (lambda x: x + 3, 12),
    "add twice": (lambda x: torch.add(x, x, alpha=-5), 54),
    "subtract": (lambda x: 3 - (x - 20), 32),
    "multiply": (lambda x: x * (x - 1), 90),
    "remainder": (lambda x: x * 1000 % -7, 7),
    "divide": (lambda x: -x // 2, 9),
    "sum": (lambda x: x.sum(-1), 45),
    "count": (lambda x: (x > 2).sum(), 20),
    "add up": (lambda x: x.cumsum(-1), 45),
    "place": (lambda x: x.argmax(-1), 5),
    "place in all": (lambda x: x.argmax(), 20),
    "products": (lambda x: x @ x.mT, 405),
    "products of many": (lambda x: x.unsqueeze(0) @ x.unsqueeze(0).mT, 405),
    "products and more": (lambda x: torch.addmm(x[:, :4], x, x.mT), 414),
    "choose": (lambda x: torch.where(x > 2, x, -30), 30),
    "fill": (lambda x: x.masked_fill(x > 2, 40) + torch.full_like(x, -50), 90),
    "limit": (lambda x: x.clamp(max=-60), 60),
    "write": (lambda x: x.scatter(-1, x[..., :1] % 5, 70), 70),
    "write over": (lambda x: x.scatter(-1, x[..., :1] % 5, x[..., :1] * 8), 72),
    "write and add": (lambda x: torch.zeros_like(x).scatter_add(-1, x * 0, x), 180),
    "pad": (lambda x: functional.pad(x, (1, 1), value=80), 80),
    "constant": (lambda x: x + torch.arange(0, 500, 100), 409),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers_are_no_larger_than_is_known(name: str) -> None:
    function, bound = FUNCTIONS[name]
    x = torch.from_numpy(stream(0, "integers").integers(0, GIVEN + 1, (4, 5)))
    graph = AtenRecorder().run(torch.func.functionalize(function), form_of(x))
    bounds, found = IntegerBounds(graph, GIVEN), dict[int, Any](graph.known) | {0: x}
    for operation in graph.needed():
        if operation.outputs[0] not in graph.known:
            bounds.add(operation)
            args, kwargs = replace_in((operation.args, operation.kwargs), Ref, lambda ref: found[ref.number])
            found[operation.outputs[0]] = operation.target(*args, **kwargs)
        assert float(found[operation.outputs[0]].double().abs().max()) <= bounds.get(operation.outputs[0])
    assert bounds.get(graph.results.number) == bound


def test_what_may_be_too_large_is_refused() -> None:
    graph = AtenRecorder().run(torch.func.functionalize(lambda x: x * 2_000_000), form_of(torch.arange(3)))
    with pytest.raises(Unsupported, match=r"may give 1\.8e"):
        IntegerBounds(graph, GIVEN).add(graph.needed()[-1])
