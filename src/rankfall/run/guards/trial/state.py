"""What a component could keep between calls: all that can be reached from it through files that are not installed.

A number that hides in a value of a dictionary, a tensor, a default, a closure, the class, another file or a table of `lru_cache` is as much
state as one that is an attribute.
"""

import functools
import gc
import itertools
import random
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CellType, CodeType, FunctionType, GeneratorType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch

PLAIN = (bool, int, float, complex, str, bytes, type(None))
HOLDERS = (list, tuple, dict, set, frozenset, deque)
CACHED = type(functools.lru_cache(lambda: None))
COUNTS = (itertools.count, itertools.cycle)  # say in their text where they are
ITERABLES: tuple[Any, ...] = ([], (), range(0), {}, {}.values(), {}.items(), set(), "", b"")
ITERATORS = (type(reversed([])), *(type(iter(one)) for one in ITERABLES))
WRAPPERS = (enumerate, zip, map, filter)  # of other iterators
SHARED = ("sys", "torch", "math", "numpy", "os", "builtins")  # modules to which something could be added
OURS = {name: frozenset(vars(sys.modules[name])) for name in SHARED if name in sys.modules}
DEEPEST = 12  # things inside one another
INSTALLED = frozenset({"site-packages", "dist-packages"})  # folders of packages that are not the author's


class StateReader:
    """Reads each thing once; `own` is the component's module."""

    def __init__(self, own: str) -> None:
        self.own, self.seen = (
            own,
            dict[int, Any](),
        )  # which holds what it has seen, or another thing could have its number
        self.modules: dict[str, ModuleType] = {own: sys.modules[own]}

    def of(self, places: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Any]]:
        """What is named by its place and name -> the plain values in it, in order. Then that of the modules."""
        kept: dict[str, list[Any]] = {}
        waiting = [(f"{place} {name!r}", value) for place, held in places.items() for name, value in list(held.items())]
        for label, value in waiting:
            kept[label] = list(self.values(value, 0))
        for module, before in OURS.items():
            for name in sorted(vars(sys.modules[module]).keys() - before):
                value = vars(sys.modules[module])[name]
                if isinstance(
                    value, (*PLAIN, *HOLDERS, torch.Tensor, np.ndarray)
                ):  # libraries add modules and functions as they go
                    kept[f"{module}.{name}"] = list(self.values(value, 0))
        done: set[str] = set()
        while more := self.modules.keys() - done:
            for module in sorted(more):
                done.add(module)
                place = "global" if module == self.own else f"global of {module}:"
                for name, value in list(vars(self.modules[module]).items()):
                    if not name.startswith("__"):
                        kept[f"{place} {name!r}"] = list(self.values(value, 0))
        return {label: values for label, values in kept.items() if values}

    def values(self, thing: Any, depth: int) -> Iterator[Any]:
        """The plain values in a thing."""
        if isinstance(thing, PLAIN):
            yield thing
        elif isinstance(thing, torch.Tensor):
            yield thing.detach().clone()
        elif isinstance(thing, np.ndarray):
            yield thing.copy()
        elif isinstance(thing, COUNTS):
            yield repr(thing)
        elif isinstance(thing, random.Random):
            yield repr(thing.getstate())
        elif isinstance(thing, np.random.Generator):
            yield repr(thing.bit_generator.state)
        elif isinstance(thing, np.random.RandomState):
            yield repr(thing.get_state(legacy=False))
        elif isinstance(thing, torch.Generator):
            yield thing.get_state()
        elif depth < DEEPEST and id(thing) not in self.seen:
            self.seen[id(thing)] = thing
            inside = list(self.inside(thing))
            if isinstance(thing, HOLDERS):
                yield len(inside)
            for one in inside:
                yield from self.values(one, depth + 1)

    def inside(self, thing: Any) -> Iterator[Any]:
        """What a thing holds. Of what is installed nothing but containers, and modules of torch, is looked into."""
        if isinstance(thing, Mapping):
            yield from itertools.chain.from_iterable(list(thing.items()))
        elif isinstance(thing, set | frozenset):
            yield from sorted(thing, key=repr)
        elif isinstance(thing, HOLDERS):
            yield from list(thing)
        elif isinstance(thing, functools.partial):
            yield from (thing.func, thing.args, thing.keywords)
        elif isinstance(thing, MethodType):
            yield from (thing.__self__, thing.__func__)
        elif isinstance(thing, ITERATORS + WRAPPERS):
            yield from thing.__reduce__()[1:]  # type: ignore[index]  # what is left, or the place; none is taken
        elif isinstance(thing, GeneratorType):
            frame = thing.gi_frame
            yield from (None,) if frame is None else (frame.f_lasti, dict(frame.f_locals))
        elif isinstance(thing, threading.local):
            yield dict(vars(thing))
        elif isinstance(thing, CACHED) and self.counts_calls(thing.__module__):
            yield from (*thing.cache_info(), *gc.get_referents(thing))
        elif isinstance(thing, CellType) or (isinstance(thing, CACHED) and self.is_local(thing.__module__)):
            yield from gc.get_referents(thing)
        elif isinstance(thing, FunctionType) and self.is_local(thing.__module__):
            yield from (thing.__defaults__, thing.__kwdefaults__, thing.__closure__, vars(thing))
        elif isinstance(thing, ModuleType):
            self.is_local(thing.__name__)
        elif isinstance(thing, type):
            if self.is_local(thing.__module__):
                yield from (value for name, value in list(vars(thing).items()) if not name.startswith("__"))
        elif isinstance(thing, SimpleNamespace | torch.nn.Module) or self.is_local(type(thing).__module__):
            yield from (type(thing), getattr(thing, "__dict__", None))

    def is_local(self, module: str | None) -> bool:
        """Whether a module is the component's, or another local one of its author, which is then looked into as well."""
        if module is None or module not in sys.modules:
            return False
        if module not in self.modules:
            found, top = sys.modules[module], module.partition(".")[0]
            file = getattr(found, "__file__", None)
            if (
                file is None
                or top == "rankfall"
                or top in sys.stdlib_module_names
                or INSTALLED.intersection(Path(file).parts)
            ):
                return False
            self.modules[module] = found
        return True

    def counts_calls(self, module: str | None) -> bool:
        """Whether a local module asks a table of `lru_cache` how often it was asked."""
        return self.is_local(module) and any(
            "cache_info" in names_of(value.__code__)
            for value in vars(self.modules[str(module)]).values()
            if isinstance(value, FunctionType)
        )


def names_of(code: CodeType) -> set[str]:
    """Of all names that a function and those inside it use."""
    return set(code.co_names).union(*(names_of(one) for one in code.co_consts if isinstance(one, CodeType)))
