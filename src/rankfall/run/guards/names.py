"""Names of libraries and of this package that code could replace: what each of them stands for, so that a replaced one is found.

A component that replaces `torch.Tensor.softmax`, or a function of this package, changes what all others compute, whose keys lack its file.
What is added is no replacement, unless it hides something: a name that a class has from another, or one of Python's own.
"""

import builtins
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

LIBRARIES = (
    *("builtins", "math", "cmath", "random", "operator", "functools", "itertools", "statistics"),
    *("numpy", "numpy.linalg", "numpy.random", "numpy.fft"),
    *("torch", "torch.functional", "torch.nn.functional", "torch.nn", "torch.nn.init", "torch.autograd"),
    *("torch.linalg", "torch.special", "torch.fft", "torch.func", "torch._VF", "torch._C._nn", "torch._C._linalg"),
    *("scipy.special", "scipy.linalg", "scipy.stats", "scipy.optimize"),
)
CLASSES = (("torch", "Tensor"),)  # of libraries, beside those of torch.nn
OWN = __name__.partition(".")[0]
COMPARED = (type, FunctionType, BuiltinFunctionType, ModuleType, float, int, str, bytes, tuple, frozenset)
ABSENT: Any = object()  # stands for a name that is not there
Place = tuple[str, str]  # module and class, or module and ""


class Names:
    """What names stand for now."""

    def __init__(self) -> None:
        self.places: dict[Place, tuple[Any, dict[str, Any]]] = {}  # -> module or class, and what is in it
        self.codes: dict[Place, dict[str, Any]] = {}  # -> how functions of this package are made
        self.lasting = ""  # a change that could not be undone
        self.look()

    def look(self) -> None:
        """Remember what names stand for in the modules that were imported since the last look."""
        for name in (*LIBRARIES, *[name for name in sys.modules if name == OWN or name.startswith(OWN + ".")]):
            if (name, "") not in self.places and isinstance(module := sys.modules.get(name), ModuleType):
                self.add(name, module)

    def add(self, name: str, module: ModuleType) -> None:
        spec = getattr(module, "__spec__", None)
        if getattr(spec, "_initializing", False):  # half imported
            return
        self._remember((name, ""), module)
        for attribute, value in list(vars(module).items()):
            if isinstance(value, type) and (value.__module__ == name or name == "torch.nn"):
                self._remember((name, attribute), value)
        for of, attribute in CLASSES:
            if of == name:
                self._remember((name, attribute), getattr(module, attribute))

    def _remember(self, place: Place, holder: Any) -> None:
        values = dict(vars(holder))
        self.places[place] = holder, values
        if place[0].partition(".")[0] == OWN:
            self.codes[place] = {
                name: _content_of(value) for name, value in values.items() if _content_of(value) is not None
            }

    def find_replaced(self) -> Iterator[tuple[str, Any, Any, Any]]:
        """Of each name that stands for something else: the name in full, the module or class, and what it stood for and stands for now."""
        for (module, inside), (holder, before) in self.places.items():
            now = vars(holder)
            full = f"{module}.{inside}" if inside else module
            for name, value in before.items():
                other = now.get(name, ABSENT)
                if other is not value and self._counts(module, name, value, other):
                    yield f"{full}.{name}", holder, value, other
            if len(now) != len(before):
                for name in now.keys() - before.keys():
                    if hides(holder, name):
                        yield f"{full}.{name}", holder, ABSENT, now[name]
            for name, made in self.codes.get((module, inside), {}).items():
                value = before[name]
                if now.get(name) is value and _content_of(value) != made:
                    yield f"{full}.{name}", holder, value, value

    @staticmethod
    def _counts(module: str, name: str, before: Any, now: Any) -> bool:
        """Whether this is a replacement, not what a module notes while it works."""
        if name.startswith("__") and not callable(before):
            return False
        if now is ABSENT:
            return callable(before)
        if (
            getattr(now, "__wrapped__", None) is before
            and getattr(getattr(now, "__code__", None), "co_filename", "") == _compile_file()
        ):
            return False  # torch itself has its compiler pass over this function, from the first import of `torch._dynamo` on
        if sys.modules.get(f"{module}.{name}") is now:  # a part of it was imported, of the same name
            return False
        return isinstance(before, COMPARED) or callable(before)


def _compile_file() -> str:
    """Where torch wraps its own functions."""
    return str(getattr(sys.modules.get("torch._compile"), "__file__", ""))


def hides(holder: Any, name: str) -> bool:
    """Whether a name that was added hides another."""
    if isinstance(holder, type):
        inherited = any(name in vars(base) for base in holder.__mro__[1:])
        return inherited and (not name.startswith("__") or callable(vars(holder)[name]))
    return hasattr(builtins, name) and not name.startswith("__")


def undo(name: str, holder: Any, before: Any) -> None:
    attribute = name.rpartition(".")[2]
    if before is ABSENT:
        delattr(holder, attribute)
    else:
        setattr(holder, attribute, before)


def _content_of(value: Any) -> tuple[Any, ...] | None:
    """What a function does: its code and defaults."""
    if not isinstance(value, FunctionType):
        return None
    return value.__code__, value.__defaults__, tuple((value.__kwdefaults__ or {}).items())
