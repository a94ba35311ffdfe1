"""Guard settings of a process that change the numbers of all components: precision flags, and global random generators."""

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from operator import attrgetter
from typing import Any

import numpy as np

Refuse = Callable[[str, str], Exception]  # makes an error from a fault and its fix
FLAGS: dict[str, str] = {  # expression that reads a flag -> function of torch that sets it; empty for an attribute
    "torch.get_default_dtype()": "set_default_dtype",
    "torch.get_default_device()": "set_default_device",
    "torch.get_float32_matmul_precision()": "set_float32_matmul_precision",
    "torch.get_num_threads()": "set_num_threads",
    "torch.is_grad_enabled()": "set_grad_enabled",
    "torch.are_deterministic_algorithms_enabled()": "use_deterministic_algorithms",
    "torch.backends.cuda.matmul.allow_tf32": "",
    "torch.backends.cudnn.allow_tf32": "",
    "torch.backends.cudnn.benchmark": "",
    "torch.backends.cudnn.deterministic": "",
}


def read_flags() -> dict[str, Any]:
    """Return the value of each flag that this version of torch has. Before torch is imported there are none: figures never import it."""
    torch: Any = sys.modules.get("torch")
    values: dict[str, Any] = {}
    if torch is None or not hasattr(torch, "set_num_threads"):  # absent, or half imported
        return values
    for name, function in FLAGS.items():
        with suppress(AttributeError, RuntimeError):
            value = attrgetter(name.removeprefix("torch.").removesuffix("()"))(torch)
            values[name] = value() if function else value
    return values


def differing_flags(before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of each flag that differs from `before`."""
    return {name: value for name, value in read_flags().items() if name in before and value != before[name]}


def changed_flags(before: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return fault and fix of the first flag that differs from `before`, or None."""
    for name, value in differing_flags(before).items():
        fault = f"changes {name} from {before[name]!r} to {value!r}, which other components compute with"
        return fault, "leave the flag as it is, or put it back by try and finally"
    return None


def restore_flags(before: Mapping[str, Any]) -> None:
    """Put back each flag that differs from `before`."""
    torch = sys.modules.get("torch")
    for name in differing_flags(before):
        holder, _, last = name.removeprefix("torch.").rpartition(".")
        if FLAGS[name]:
            getattr(torch, FLAGS[name])(before[name])
        else:
            setattr(attrgetter(holder)(torch), last, before[name])


@contextmanager
def unchanged_flags(refuse: Refuse) -> Iterator[None]:
    """Raise the error of `refuse` if a flag is different afterwards, and put the flag back."""
    before = read_flags()
    try:
        yield
    finally:
        changed = changed_flags(before)
        restore_flags(before)
    if changed:
        raise refuse(*changed)


@contextmanager
def unused_generators(refuse: Refuse) -> Iterator[None]:
    """Raise the error of `refuse` if Python's, NumPy's or torch's global generator was drawn from, and put all of them back."""
    import torch

    python, numbers, tensors = random.getstate(), np.random.get_state(legacy=False), torch.get_rng_state()
    try:
        yield
        drawn = {
            "Python's": random.getstate() != python,
            "NumPy's": repr(np.random.get_state(legacy=False)) != repr(numbers),
            "torch's": not torch.equal(torch.get_rng_state(), tensors),
        }
        if used := [owner for owner, changed in drawn.items() if changed]:
            raise refuse(
                f"draws from {' and '.join(used)} global random numbers",
                "draw from the generator that is passed in, or let `init` draw it",
            )
    finally:
        random.setstate(python)
        np.random.set_state(numbers)
        torch.set_rng_state(tensors)
