"""The module and inputs that `rankfall check` reads from functions of a Python file.

A file is code that runs, so `module_from_file` first reports which file and which functions.
"""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from rankfall.errors import RankfallError, describe_error, suggest

HELP = "FILE.py:FUNCTION, a function without arguments that returns an nn.Module"


def is_file(target: str) -> bool:
    return target.partition(":")[0].endswith(".py")


def split_target(target: str, option: str) -> tuple[Path, str]:
    """Split FILE.py:NAME into the path and the name."""
    file, _, name = target.rpartition(":")
    if not file or not name.isidentifier():
        raise RankfallError(f"{option} {target!r}: write FILE.py:NAME, for example mymodel.py:build")
    path = Path(file).expanduser()
    if not path.is_file():
        raise RankfallError(f"{option} {target!r}: there is no file {file}")
    return path, name


def module_of(path: Path, known: dict[Path, ModuleType]) -> ModuleType:
    """Run the file once and return it as a module. Like a script, it can import files beside it from now on."""
    path = path.resolve()
    if path in known:
        return known[path]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the file may raise
        raise RankfallError(f"{path.name} fails when it is imported: {describe_error(error)}") from error
    finally:
        if before is not None:
            sys.modules[path.stem] = before
    known[path] = module
    return module


def find_name(path: Path, name: str, known: dict[Path, ModuleType]) -> Any:
    """Return what a file holds under a name. `known` are the files that have been run."""
    module = module_of(path, known)
    if not hasattr(module, name):
        functions = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise RankfallError(f"{path.name} has no {name!r}" + suggest(name, functions))
    return getattr(module, name)


def call_function(value: Any, name: str, path: Path) -> Any:
    """Return the result of a function without arguments; any other value, or a module, as it is."""
    if isinstance(value, nn.Module) or not callable(value):
        return value
    try:
        return value()
    except RankfallError:
        raise
    except Exception as error:  # whatever it may raise
        raise RankfallError(f"{path.name}:{name}() fails: {describe_error(error)}") from error


def module_from_file(target: str, inputs: str | None, say: Callable[[str], None]) -> tuple[nn.Module, Any, str]:
    """Return the module, its inputs and a name for it."""
    known: dict[Path, ModuleType] = {}
    path, name = split_target(target, "model")
    say(f"runs {path}: {name}()" + (f", and {inputs} for the inputs" if inputs else ""))
    model, example = call_function(find_name(path, name, known), name, path), None
    if isinstance(model, tuple) and len(model) == 2 and isinstance(model[0], nn.Module):
        model, example = model  # a function may return both
    if not isinstance(model, nn.Module):
        raise RankfallError(f"{path.name}:{name} gives {type(model).__name__}, not an nn.Module: {HELP}")
    if inputs is not None:
        inputs_path, inputs_name = split_target(inputs, "--inputs")
        example = call_function(find_name(inputs_path, inputs_name, known), inputs_name, inputs_path)
    if example is None:
        option = f"--inputs {path.name}:NAME, a tensor, tuple or dict or a function that returns one"
        raise RankfallError(f"{path.name}:{name} needs an example of its inputs: {option}")
    return model, example, f"{path.name}:{name}"


def read_value(target: str, option: str) -> Any:
    """Return what FILE.py:NAME holds."""
    return find_name(*split_target(target, option), {})
