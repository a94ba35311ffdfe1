"""Modules that a user names as blocks: by name or glob, a pattern, a list of modules, a class, or as modules."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence

from torch import nn

from rankfall.errors import RankfallError, suggest

# of DDP, torch.compile and FSDP
WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
Single = str | re.Pattern[str] | nn.Module | type
Wanted = Single | Sequence[Single]


def find_named(model: nn.Module, wanted: Wanted) -> dict[str, nn.Module]:
    """Return the modules that `wanted` names, by their names without wrappers. A list of modules stands for its members."""
    named = {plain(name): one for name, one in model.named_modules()}
    if not isinstance(wanted, str | re.Pattern | nn.Module | type | Iterable):
        raise RankfallError(
            f"blocks is {wanted!r}: it must be a glob such as 'layers.*', a compiled pattern, or names, classes or modules"
        )
    alone = isinstance(wanted, str | re.Pattern | nn.Module | type)
    found: dict[str, nn.Module] = {}
    for one in [wanted] if alone else wanted:  # type: ignore[union-attr, list-item]
        found |= find_single(named, one)  # type: ignore[arg-type]
    if not found:
        raise RankfallError(f"blocks={wanted!r} names no module of the model; there are {describe_classes(named)}")
    return found


def find_single(named: dict[str, nn.Module], wanted: Single) -> dict[str, nn.Module]:
    """Return the modules that one name, glob, pattern, class or module stands for."""
    if isinstance(wanted, nn.Module):
        name = next((name for name, one in named.items() if one is wanted), None)
        if name is None:
            raise RankfallError(
                f"blocks: {type(wanted).__name__} is not a module inside the model; there are {describe_classes(named)}"
            )
        return members(name, wanted)
    kind = wanted if isinstance(wanted, str) else getattr(wanted, "__name__", None)
    if isinstance(wanted, str) and wanted in named:
        return members(wanted, named[wanted])
    found = {name: one for name, one in named.items() if name and fits(name, one, wanted)}
    if not found:
        shown = wanted.pattern if isinstance(wanted, re.Pattern) else kind
        known = [*named, *{type(one).__name__ for one in named.values()}]
        raise RankfallError(
            f"blocks: {shown!r} names no module of the model; there are {describe_classes(named)}{suggest(shown or '', known)}"
        )
    return found


def fits(name: str, module: nn.Module, wanted: str | re.Pattern[str] | type) -> bool:
    """Return whether a name matches a pattern or a glob, in which a star does not cross a dot, or a module is of a class."""
    if isinstance(wanted, re.Pattern):
        return wanted.fullmatch(name) is not None
    if isinstance(wanted, type):
        return type(module).__name__ == wanted.__name__
    parts, globs = name.split("."), wanted.split(".")
    if len(parts) == len(globs) and all(map(fnmatch.fnmatchcase, parts, globs)):
        return True
    return type(module).__name__ == wanted


def members(name: str, module: nn.Module) -> dict[str, nn.Module]:
    """Return the modules in a list of modules, or the module itself."""
    return named_children(name, module) if isinstance(module, nn.ModuleList | nn.Sequential) else {name: module}


def named_children(name: str, module: nn.Module) -> dict[str, nn.Module]:
    """Return the children of a module by full name. A module that occurs twice (tied) counts once."""
    found = {plain(f"{name}.{child}").strip("."): one for child, one in module.named_children()}
    return {child: one for child, one in found.items() if child}


def plain(name: str) -> str:
    """Return a module's name without the parts of wrappers."""
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


def unwrap(module: nn.Module) -> nn.Module:
    """Return the module inside the wrappers of PyTorch: of `torch.compile`, of several processes, of checkpointing."""
    inner = next((module._modules[name] for name in WRAPPERS if module._modules.get(name) is not None), None)
    wrapper = type(module).__module__.startswith("torch.") and len(module._modules) == 1
    return unwrap(inner) if wrapper and inner is not None else module


def inner_modules(module: nn.Module, name: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, nn.Module]]:
    """Yield all modules inside the wrappers of PyTorch with their names there, as `named_modules` does for a model without wrappers."""
    module, seen = unwrap(module), set() if seen is None else seen
    if id(module) not in seen:
        seen.add(id(module))
        yield name, module
        for child, one in module.named_children():
            yield from inner_modules(one, f"{name}.{child}".strip("."), seen)


def describe_classes(named: dict[str, nn.Module], most: int = 5) -> str:
    """Describe the most frequent classes of modules, with their counts and first members."""
    groups: dict[str, list[str]] = {}
    for name, one in named.items():
        if name:
            groups.setdefault(type(one).__name__, []).append(name)
    order = sorted(groups.items(), key=lambda group: -len(group[1]))
    listed = [f"{len(names)} x {kind} ({names[0]})" for kind, names in order[:most]]
    return (", ".join(listed) or "no modules inside") + (
        f" and {len(order) - most} more classes" if len(order) > most else ""
    )
