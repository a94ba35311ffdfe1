"""Count what a step of one member must do, and the rates that a device allows it.

`unfused` counts the bytes that the operations of a step read and write as they are called. A higher rate needs fused operations. `state`
counts the bytes that remain if every activation stays on the chip: weights are read forward and backward, gradients written, and the
optimiser reads weights, gradients and its state and writes weights and state.
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
    """The work of a step of one member."""

    operations: float  # of matrix products; a multiplication and an addition are two
    state: float  # bytes
    unfused: float  # bytes


@dataclass(frozen=True)
class Card:
    """The measured rates of a device."""

    operations: float  # a second, in products of large float32 matrices
    bytes: float  # a second, read and written

    def limits(self, work: Work) -> dict[str, float]:
        """Return the limits of a rate in member-steps a second."""
        return {
            "limit_operations": self.operations / work.operations,
            "limit_state": self.bytes / work.state,
            "limit_unfused": self.bytes / work.unfused,
        }


class Traffic(TorchDispatchMode):
    """Counts the bytes that operations read and write. Views and allocations count as none."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        arguments = [leaf for leaf in tree_leaves((args, kwargs or {})) if isinstance(leaf, Tensor)]
        results = [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor)]
        storages = {tensor.untyped_storage().data_ptr() for tensor in arguments}
        shared = results and all(tensor.untyped_storage().data_ptr() in storages for tensor in results)
        view = shared and not func._schema.is_mutable
        if not view and "empty" not in func.overloadpacket.__name__:
            self.bytes += sum(bytes_of(tensor) for tensor in (*arguments, *results))
        return output


def bytes_of(values: Tensor) -> int:
    """Return the bytes that reading all values takes, where expanded axes are read once."""
    distinct = [length for length, stride in zip(values.shape, values.stride()) if stride != 0]
    return int(torch.Size(distinct).numel()) * values.element_size()


def count_work(step: Callable[[], object], members: Members) -> Work:
    """Count the work of `step`, which takes a step of these members by autograd."""
    count = len(members)
    with FlopCounterMode(display=False) as operations:
        step()
    with Traffic() as traffic:
        step()
    slots = members.optimizer.slots
    numbers = (3 + 3 + 2 * slots) * members.weights.numel() / count  # of the passes, the optimiser and its state
    state = numbers * members.weights.element_size()
    return Work(operations.get_total_flops() / count, state, traffic.bytes / count)
