"""Settings of a process that change the numbers of all components: number formats, precision, determinism, and global random generators."""

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np

Flag = tuple[Callable[[], Any], Callable[[Any], Any]]  # reads it, puts it back
BACKENDS = {
    "cuda.matmul": ("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"),
    "cudnn": ("enabled", "benchmark", "deterministic", "allow_tf32"),
}


def known_flags() -> dict[str, Flag]:
    """Return the flags by name. torch is read only where it is imported: figures do without it."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "set_num_threads"):  # absent, or half imported
        return {}
    flags: dict[str, Flag] = {
        "torch.get_default_dtype()": (torch.get_default_dtype, torch.set_default_dtype),
        "torch.get_default_device()": (lambda: str(torch.get_default_device()), torch.set_default_device),
        "torch.get_float32_matmul_precision()": (
            torch.get_float32_matmul_precision,
            torch.set_float32_matmul_precision,
        ),
        "torch.get_num_threads()": (torch.get_num_threads, torch.set_num_threads),
        "torch.is_grad_enabled()": (torch.is_grad_enabled, torch._C._set_grad_enabled),
        "torch.are_deterministic_algorithms_enabled()": (
            torch.are_deterministic_algorithms_enabled,
            torch.use_deterministic_algorithms,
        ),
    }
    for backend, names in BACKENDS.items():
        holder = torch.backends
        for part in backend.split("."):
            holder = getattr(holder, part)
        for name in names:
            flags[f"torch.backends.{backend}.{name}"] = partial(getattr, holder, name), partial(setattr, holder, name)
    return flags


def read_flags() -> dict[str, Any]:
    """Return the value of each flag that this version of torch has."""
    values = {}
    for name, (read, _) in known_flags().items():
        with suppress(AttributeError, RuntimeError):
            values[name] = read()
    return values


@contextmanager
def unchanged_flags(refuse: Callable[[str, str], Exception]) -> Iterator[None]:
    """Raise what `refuse` makes of a finding and its fix if a flag is different afterwards, and put the flag back."""
    before = read_flags()
    try:
        yield
    finally:
        after, flags = read_flags(), known_flags()
        changed = [name for name, value in before.items() if name in after and after[name] != value]
        for name in changed:
            flags[name][1](before[name])
    for name in changed:
        what = f"changes {name} from {before[name]!r} to {after[name]!r}, which other components compute with"
        raise refuse(what, "leave the flag as it is, or put it back by try and finally")


@contextmanager
def unused_generators(refuse: Callable[[str, str], Exception]) -> Iterator[None]:
    """Raise what `refuse` makes of a finding and its fix if Python's, NumPy's or torch's global generator was drawn from. The
    generators are put back."""
    import torch

    python, numbers, tensors = random.getstate(), np.random.get_state(legacy=False), torch.get_rng_state()
    try:
        yield
        drawn = {
            "Python's": random.getstate() != python,
            "NumPy's": repr(np.random.get_state(legacy=False)) != repr(numbers),
            "torch's": not torch.equal(torch.get_rng_state(), tensors),
        }
        if used := [whose for whose, changed in drawn.items() if changed]:
            raise refuse(
                f"draws from {' and '.join(used)} global random numbers",
                "draw from the generator that is passed in, or let `init` draw it",
            )
    finally:
        random.setstate(python)
        np.random.set_state(numbers)
        torch.set_rng_state(tensors)
