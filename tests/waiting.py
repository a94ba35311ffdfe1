"""The ways of a GPU, taken on a processor, and a watch for what would make the program wait for one."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# Sizes or values are asked for.
VALUES = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "_unique2", "is_nonzero"}
TAKEN = {"cpu", "numpy", "tolist", "__array__"}  # copies to the processor, which on one are nothing
GIVEN = {"tensor", "as_tensor", "new_tensor", "from_numpy"}  # copies from there, which a recorded step cannot have


def as_on_a_gpu(patch: pytest.MonkeyPatch) -> None:
    """What the package does differently on a GPU is done here too."""
    for name, module in list(sys.modules.items()):
        if name.startswith("rankfall.") and hasattr(module, "waits"):
            patch.setattr(module, "waits", lambda device: True)


class Operations(TorchDispatchMode):
    def __init__(self, heard: Callable[[str], None]) -> None:
        super().__init__()
        self.heard = heard

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        masks = name.startswith("index") and any(
            isinstance(one, torch.Tensor) and one.dtype == torch.bool
            for given in args[1:2]
            if isinstance(given, list | tuple)
            for one in given
        )
        if name in VALUES or masks:
            self.heard(name)
        return func(*args, **(kwargs or {}))


class Methods(TorchFunctionMode):
    def __init__(self, heard: Callable[[str], None], names: set[str]) -> None:
        super().__init__()
        self.heard, self.names = heard, names

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        target = [*args[1:2], *(kwargs or {}).values()] if name == "to" else []
        if name in self.names or any(one == "cpu" for one in target if isinstance(one, str)):
            self.heard(name)
        return func(*args, **(kwargs or {}))


@contextmanager
def watched(heard: Callable[[str], None], recorded: bool = False) -> Iterator[None]:
    """Within, `heard` is called with the name of each operation for which the program would wait; or that cannot be `recorded`."""
    with Methods(heard, TAKEN | GIVEN if recorded else TAKEN), Operations(heard):
        yield
