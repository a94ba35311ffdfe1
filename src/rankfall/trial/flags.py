"""Guard settings of a process that change the numbers of all components: precision flags, and global random generators."""

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

Flag = tuple[Callable[[], Any], Callable[[Any], Any]]  # reads it, puts it back
Refuse = Callable[[str, str], Exception]  # makes an error of a finding and its fix


def known_flags() -> dict[str, Flag]:
    """Return the flags by name. torch is read only where it is imported: figures do without it."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "set_num_threads"):  # absent, or half imported
        return {}
    named = ("default_dtype", "default_device", "float32_matmul_precision", "num_threads")
    pairs = [(f"get_{name}", f"set_{name}") for name in named]
    pairs += [
        ("is_grad_enabled", "set_grad_enabled"),
        ("are_deterministic_algorithms_enabled", "use_deterministic_algorithms"),
    ]
    flags: dict[str, Flag] = {f"torch.{read}()": (getattr(torch, read), getattr(torch, write)) for read, write in pairs}
    kept = ("cuda.matmul.allow_tf32", "cudnn.allow_tf32", "cudnn.benchmark", "cudnn.deterministic")
    for holder, _, name in (one.rpartition(".") for one in kept):
        backend = attrgetter(holder)(torch.backends)
        flags[f"torch.backends.{holder}.{name}"] = partial(getattr, backend, name), partial(setattr, backend, name)
    return flags


def read_flags() -> dict[str, Any]:
    """Return the value of each flag that this version of torch has."""
    values = {}
    for name, (read, _) in known_flags().items():
        with suppress(AttributeError, RuntimeError):
            values[name] = read()
    return values


def changed_flags(before: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the first flag that differs from `before`, as a finding and its fix, or None."""
    after = read_flags()
    for name, value in before.items():
        if name in after and after[name] != value:
            what = f"changes {name} from {value!r} to {after[name]!r}, which other components compute with"
            return what, "leave the flag as it is, or put it back by try and finally"
    return None


def restore_flags(before: Mapping[str, Any]) -> None:
    """Put back each flag that differs from `before`."""
    after, flags = read_flags(), known_flags()
    for name, value in before.items():
        if name in after and after[name] != value:
            flags[name][1](value)


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
        if used := [whose for whose, changed in drawn.items() if changed]:
            raise refuse(
                f"draws from {' and '.join(used)} global random numbers",
                "draw from the generator that is passed in, or let `init` draw it",
            )
    finally:
        random.setstate(python)
        np.random.set_state(numbers)
        torch.set_rng_state(tensors)
