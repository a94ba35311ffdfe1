"""The blocks of a module, which map the states of one layer to those of the next.

They are found without a forward pass: lists (`nn.ModuleList`, `nn.Sequential`) whose members have submodules; else adjacent members of
one class; else a class that occurs several times. The candidate with the most parameters wins, since the parts of a block (such as
experts) have fewer parameters than all blocks.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from torch import nn

from rankfall.errors import RankfallError

WRAPPERS = (
    "module",
    "_orig_mod",
    "_fsdp_wrapped_module",
    "_checkpoint_wrapped_module",
)  # of DDP, torch.compile and FSDP
NEVER_CALLED = (nn.ModuleList, nn.ModuleDict)
Wanted = str | re.Pattern[str] | Sequence["str | nn.Module"]


@dataclass(frozen=True)
class Blocks:
    """Names and modules of the blocks, in order. `ancestors` contain some or all of them, so their calls are passes through the model."""

    names: tuple[str, ...]
    modules: tuple[nn.Module, ...]
    ancestors: tuple[nn.Module, ...]
    others: tuple[str, ...] = ()  # other candidates, such as an encoder's blocks beside the decoder's

    def summary(self) -> str:
        kinds = sorted({type(unwrap(one)).__name__ for one in self.modules})
        ends = f"{self.names[0]} .. {self.names[-1]}" if len(self.names) > 1 else self.names[0]
        others = f"; not watched: {', '.join(self.others)}" if self.others else ""
        return f"{len(self.modules)} x {' / '.join(kinds)} ({ends}{others})"


def find_blocks(model: nn.Module, wanted: Wanted | None = None) -> Blocks:
    """Return the blocks that `wanted` names (a glob, a pattern, names or modules), or find them if it is None."""
    if not isinstance(model, nn.Module):
        raise RankfallError(f"watch() takes a torch.nn.Module, not {type(model).__name__}")
    every = dict(model.named_modules())
    named = {plain(name): one for name, one in every.items()}  # a wrapped module replaces its wrapper
    found = (
        search_run(named)
        if wanted is None
        else choose(named, wanted, {id(m): plain(name) for name, m in every.items()})
    )
    inside = {id(part) for one in found.values() for part in one.modules()}
    members = set(map(id, found.values()))
    above = [
        one
        for one in dict.fromkeys(model.modules())
        if id(one) not in inside
        and not isinstance(one, NEVER_CALLED)
        and any(id(part) in members for part in one.modules())
    ]
    others = other_lists(named, found) if wanted is None else ()
    return Blocks(tuple(found), tuple(found.values()), tuple(above), others)


def other_lists(named: dict[str, nn.Module], found: dict[str, nn.Module]) -> tuple[str, ...]:
    """Return further lists of two or more candidates that neither contain nor lie in the chosen blocks."""
    runs = [list(run) for run in lists(named)]
    apart = [
        run[0].rpartition(".")[0]
        for run in runs
        if not any(
            f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.") for one in run for other in found
        )
    ]
    return tuple(one for one in apart if one and not any(one.startswith(f"{other}.") for other in apart))


def plain(name: str) -> str:
    """Return a module's name without the parts of wrappers."""
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


def unwrap(module: nn.Module) -> nn.Module:
    inner = next((module._modules[name] for name in WRAPPERS if module._modules.get(name) is not None), None)
    return module if inner is None or len(module._modules) > 1 else unwrap(inner)


def search_run(named: dict[str, nn.Module]) -> dict[str, nn.Module]:
    """Return the run with the most parameters, of the first kind that has a run."""
    # Lists of lists hold the branches of layers, which do not return the state.
    split = [
        name
        for name, one in named.items()
        if isinstance(one, nn.ModuleList) and any(isinstance(part, NEVER_CALLED) for part in one)
    ]
    whole = {name: one for name, one in named.items() if not any(name.startswith(f"{piece}.") for piece in split)}
    for kind in (lists, neighbours, classes):
        runs = list(kind(whole))
        if runs:
            return max(runs, key=weights_of)
    short = list(lists(whole, least=1))
    if short:
        return max(short, key=weights_of)
    pieces = f"; {split[0]} holds lists, of which no module returns the state of a layer" if split else ""
    raise RankfallError(
        f"no blocks were found in {type(named['']).__name__}: blocks are two or more modules of one kind, with parts of their own, that "
        f"map states (batch, tokens, width) to states; there are {describe_classes(named)}{pieces}. Name them: blocks='layers.*', or a "
        "list of names or modules"
    )


def lists(named: dict[str, nn.Module], least: int = 2) -> Iterator[dict[str, nn.Module]]:
    """Yield all members of each `nn.ModuleList`, and the longest run of one class of each `nn.Sequential`."""
    for name, one in named.items():
        if isinstance(one, nn.ModuleList) and all(map(can_be_block, one)) and len(one) >= least:
            yield named_children(name, one)
        elif isinstance(one, nn.Sequential):
            run = longest(named_children(name, one))
            if len(run) >= least:
                yield run


def neighbours(named: dict[str, nn.Module]) -> Iterator[dict[str, nn.Module]]:
    """Yield the longest run of one class among the members of each other module."""
    for name, one in named.items():
        if not isinstance(one, (nn.ModuleList, nn.Sequential)):
            run = longest(named_children(name, one))
            if len(run) >= 2:
                yield run


def classes(named: dict[str, nn.Module]) -> Iterator[dict[str, nn.Module]]:
    """Yield all modules of each class, wherever they are."""
    groups: dict[type, dict[str, nn.Module]] = {}
    for name, one in named.items():
        if name and can_be_block(one):
            group = groups.setdefault(type(unwrap(one)), {})
            if not any(name.startswith(f"{other}.") for other in group):
                group[name] = one
    yield from (group for group in groups.values() if len(group) >= 2)


def can_be_block(module: nn.Module) -> bool:
    """Return whether a module can be a block: it is called, has weights, and is no single operation of PyTorch."""
    inner = unwrap(module)
    if isinstance(inner, NEVER_CALLED) or next(inner.parameters(), None) is None:
        return False
    own = not type(inner).__module__.startswith("torch.nn.modules")
    return own or any(True for _ in inner.children())


def longest(children: dict[str, nn.Module]) -> dict[str, nn.Module]:
    """Return the longest run of adjacent modules of one class that can be blocks."""
    best: dict[str, nn.Module] = {}
    run: dict[str, nn.Module] = {}
    for name, one in children.items():
        same = run and type(unwrap(one)) is type(unwrap(next(iter(run.values()))))
        run = ({**run, name: one} if same else {name: one}) if can_be_block(one) else {}
        best = run if len(run) > len(best) else best
    return best


def named_children(name: str, module: nn.Module) -> dict[str, nn.Module]:
    """Return the children of a module by full name. A module that occurs twice (tied) counts once."""
    found = {plain(f"{name}.{child}").strip("."): one for child, one in module.named_children()}
    return {child: one for child, one in found.items() if child}


def weights_of(run: dict[str, nn.Module]) -> tuple[int, int]:
    distinct = {id(weight): weight.numel() for one in run.values() for weight in one.parameters()}
    return sum(distinct.values()), len(run)


def choose(named: dict[str, nn.Module], wanted: Wanted, of: dict[int, str]) -> dict[str, nn.Module]:
    """Return the modules that `wanted` names or contains. `of` maps the id of each module to its name."""
    if isinstance(wanted, (str, re.Pattern)):
        found = {name: one for name, one in named.items() if name and fits(name, wanted)}
        if isinstance(wanted, str) and len(found) == 1:  # the name of a list stands for its members
            ((name, one),) = found.items()
            if isinstance(one, (nn.ModuleList, nn.Sequential)):
                found = named_children(name, one)
    elif isinstance(wanted, Iterable):
        found = {}
        for asked in wanted:
            name = of.get(id(asked), "") if isinstance(asked, nn.Module) else asked
            if not isinstance(name, str) or not name or name not in named:
                said = repr(asked) if isinstance(asked, str) else type(asked).__name__
                raise RankfallError(
                    f"blocks: {said} is not a module inside the model; there are {describe_classes(named)}"
                )
            found[name] = named[name]
    else:
        raise RankfallError(
            f"blocks is {wanted!r}: it must be a glob such as 'layers.*', a compiled pattern, or names or modules"
        )
    if not found:
        shown = wanted.pattern if isinstance(wanted, re.Pattern) else wanted
        raise RankfallError(f"blocks={shown!r} names no module of the model; there are {describe_classes(named)}")
    loose = [name for name, one in found.items() if isinstance(one, NEVER_CALLED)]
    if loose:
        raise RankfallError(
            f"blocks: {loose[0]} is a {type(found[loose[0]]).__name__}, which is never called: name what is in it that returns the states, "
            f"such as blocks='{loose[0]}.*'"
        )
    return found


def fits(name: str, wanted: str | re.Pattern[str]) -> bool:
    """Return whether a name matches a pattern, or a glob in which a star does not cross a dot."""
    if isinstance(wanted, re.Pattern):
        return wanted.fullmatch(name) is not None
    parts, asked = name.split("."), wanted.split(".")
    return len(parts) == len(asked) and all(map(fnmatch.fnmatchcase, parts, asked))


def describe_classes(named: dict[str, nn.Module], most: int = 5) -> str:
    """Describe the most frequent classes of modules, with their counts and first members."""
    groups: dict[str, list[str]] = {}
    for name, one in named.items():
        if name:
            groups.setdefault(type(one).__name__, []).append(name)
    order = sorted(groups.items(), key=lambda group: -len(group[1]))
    said = [f"{len(names)} x {kind} ({names[0]})" for kind, names in order[:most]]
    return (", ".join(said) or "no modules inside") + (
        f" and {len(order) - most} more classes" if len(order) > most else ""
    )
