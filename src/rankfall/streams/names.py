"""Modules that a user names as blocks: by name or glob, a pattern, a list of modules, a class, or as modules."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence

from torch import nn

from rankfall.errors import RankfallError, suggest

# attributes under which DDP, torch.compile, FSDP and checkpointing hold the wrapped module
WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
LISTED = 5  # classes in a message
Single = str | re.Pattern[str] | nn.Module | type
Wanted = Single | Sequence[Single]


def find_named(model: nn.Module, blocks: Wanted) -> dict[str, nn.Module]:
    """Return the modules that `wanted` names, by their names without wrappers. A list of modules stands for its members."""
    named = {plain(name): module for name, module in model.named_modules()}
    if not isinstance(blocks, str | re.Pattern | nn.Module | type | Iterable):
        raise RankfallError(
            f"blocks is {blocks!r}: it must be a glob such as 'layers.*', a compiled pattern, or names, classes or modules"
        )
    alone = isinstance(blocks, str | re.Pattern | nn.Module | type)
    modules: dict[str, nn.Module] = {}
    for block in [blocks] if alone else blocks:  # type: ignore[union-attr, list-item]
        modules |= find_single(named, block)  # type: ignore[arg-type]
    if not modules:
        raise RankfallError(f"blocks={blocks!r} names no module of the model; there are {describe_classes(named)}")
    return modules


def find_single(named: dict[str, nn.Module], block: Single) -> dict[str, nn.Module]:
    """Return the modules that one name, glob, pattern, class or module stands for."""
    if isinstance(block, nn.Module):
        name = next((name for name, module in named.items() if module is block), None)
        if name is None:
            raise RankfallError(
                f"blocks: {type(block).__name__} is not a module inside the model; there are {describe_classes(named)}"
            )
        return members(name, block)
    if isinstance(block, str) and block in named:
        return members(block, named[block])
    modules = {name: module for name, module in named.items() if name and fits(name, module, block)}
    if not modules:
        shown = block.pattern if isinstance(block, re.Pattern) else getattr(block, "__name__", block)
        candidates = [*named, *{type(module).__name__ for module in named.values()}]
        raise RankfallError(
            f"blocks: {shown!r} names no module of the model; there are {describe_classes(named)}{suggest(shown, candidates)}"
        )
    return modules


def fits(name: str, module: nn.Module, pattern: str | re.Pattern[str] | type) -> bool:
    """Return whether a name matches a pattern or a glob, in which a star does not cross a dot, or a module is of a class."""
    if isinstance(pattern, re.Pattern):
        return pattern.fullmatch(name) is not None
    kind = pattern.__name__ if isinstance(pattern, type) else pattern
    parts, globs = name.split("."), kind.split(".")
    matches = isinstance(pattern, str) and len(parts) == len(globs) and all(map(fnmatch.fnmatchcase, parts, globs))
    return matches or type(module).__name__ == kind


def members(name: str, module: nn.Module) -> dict[str, nn.Module]:
    """Return the modules in a list of modules, by full name, or the module itself. A module that occurs twice (tied) counts once."""
    if not isinstance(module, nn.ModuleList | nn.Sequential):
        return {name: module}
    return {plain(f"{name}.{child}").strip("."): inner for child, inner in module.named_children()}


def plain(name: str) -> str:
    """Return a module's name without the parts of wrappers."""
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


def unwrap(module: nn.Module) -> nn.Module:
    """Return the module inside the wrappers of PyTorch: of `torch.compile`, of several processes, of checkpointing."""
    inner = next((module._modules[name] for name in WRAPPERS if module._modules.get(name) is not None), None)
    wrapper = type(module).__module__.startswith("torch.") and len(module._modules) == 1
    return unwrap(inner) if wrapper and inner is not None else module


def inner_modules(
    module: nn.Module, name: str = "", visited: set[int] | None = None
) -> Iterator[tuple[str, nn.Module]]:
    """Yield all modules inside the wrappers of PyTorch with their names there, as `named_modules` does for a model without wrappers."""
    module, visited = unwrap(module), set() if visited is None else visited
    if id(module) not in visited:
        visited.add(id(module))
        yield name, module
        for child, inner in module.named_children():
            yield from inner_modules(inner, f"{name}.{child}".strip("."), visited)


def describe_classes(named: dict[str, nn.Module]) -> str:
    """Describe the most frequent classes of modules, with their counts and first members."""
    groups: dict[str, list[str]] = {}
    for name, module in named.items():
        if name:
            groups.setdefault(type(module).__name__, []).append(name)
    order = sorted(groups.items(), key=lambda group: -len(group[1]))
    listed = [f"{len(names)} x {kind} ({names[0]})" for kind, names in order[:LISTED]]
    return (", ".join(listed) or "no modules inside") + (
        f" and {len(order) - LISTED} more classes" if len(order) > LISTED else ""
    )
