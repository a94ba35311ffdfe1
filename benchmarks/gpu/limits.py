"""What one step of a member must do, counted: operations, and bytes that are read and written.

`unfused` counts what the operations of the step move as they are called, each reading its arguments from memory and writing its results:
no more can be reached without fusing some. `state` is what remains when every activation stays on the chip: weights are read forward
and backward, gradients written, and the optimiser reads weights, gradients and its own state and writes weights and state.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from rankfall.train.members import Members


@dataclass(frozen=True)
class Work:
    """Of a step of one member."""

    operations: float  # of products of matrices; a multiplication and an addition are two
    state: float  # bytes
    unfused: float  # bytes


@dataclass(frozen=True)
class Card:
    """What a machine was measured to do."""

    operations: float  # a second, large products of matrices in float32
    bytes: float  # a second, read and written

    def limits(self, work: Work) -> dict[str, float]:
        """Member-steps a second."""
        return {
            "limit_operations": self.operations / work.operations,
            "limit_state": self.bytes / work.state,
            "limit_unfused": self.bytes / work.unfused,
        }


class Traffic(TorchDispatchMode):
    """Counts the bytes that operations read and write. A view moves nothing, nor does memory that is only asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        given = [one for one in tree_leaves((args, kwargs or {})) if isinstance(one, Tensor)]
        results = [one for one in tree_leaves(made) if isinstance(one, Tensor)]
        storages = {one.untyped_storage().data_ptr() for one in given}
        view = (
            not func._schema.is_mutable
            and results
            and all(one.untyped_storage().data_ptr() in storages for one in results)
        )
        if not view and "empty" not in func.overloadpacket.__name__:
            self.bytes += sum(size(one) for one in (*given, *results))
        return made


def size(values: Tensor) -> int:
    """Bytes that reading all values takes: what is expanded is read once."""
    distinct = [length for length, stride in zip(values.shape, values.stride()) if stride != 0]
    return int(torch.Size(distinct).numel()) * values.element_size()


def work_of(step: Callable[[], object], members: Members) -> Work:
    """Of a step of these members through autograd, which `step` takes."""
    count = len(members)
    with FlopCounterMode(display=False) as operations:
        step()
    with Traffic() as traffic:
        step()
    slots = members.optimizer.slots
    numbers = (3 + 3 + 2 * slots) * members.weights.numel() / count  # passes, optimiser, its state
    state = numbers * members.weights.element_size()
    return Work(operations.get_total_flops() / count, state, traffic.bytes / count)
